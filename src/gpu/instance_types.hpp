/// @file
/// Amazon EC2's instance types with GPUs, as data: what a step asks for can be checked against one,
/// and those that fit can be listed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings/accelerator.hpp"

namespace pipeline::gpu {

struct InstanceType {
  const char* name;
  unsigned gpus;
  const char* gpu;                         ///< Model, as in `A10G`.
  unsigned gpu_memory;                     ///< Of each GPU, MiB.
  settings::ComputeCapability capability;  ///< 0.0 for what is not NVIDIA's.
  unsigned vcpus;
  unsigned memory;           ///< MiB.
  const char* architecture;  ///< `x86_64` or `arm64`.
  bool is_nvidia() const { return capability.major > 0; }
};

/// What a step, or the user of `pipe instances`, asks for; zero and empty mean nothing.
struct InstanceNeeds {
  unsigned gpus = 0;
  std::string gpu_class;
  Bytes gpu_memory = 0;
  settings::ComputeCapability capability;
  Bytes memory = 0;
  double cpus = 0;
  std::string architecture;
};

std::span<const InstanceType> instance_types();
/// Nothing for a name that is not in the table.
const InstanceType* find_instance_type(std::string_view name);
/// Whether the table has types of the same family, as `g5` of `g5.huge`.
bool is_gpu_family(std::string_view name);
/// `did you mean 'g5.xlarge'?`, or empty.
std::string similar_instance_type(std::string_view name);

/// Why the type is not enough, a reason each, as in `it has 1 GPU, not 4`; none if it is.
std::vector<std::string> lacks(const InstanceType& type, const InstanceNeeds& needs);
/// The smallest first: by GPUs, vCPUs, memory.
std::vector<InstanceType> fitting_instance_types(const InstanceNeeds& needs);

}  // namespace pipeline::gpu
