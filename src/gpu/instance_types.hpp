/// @file
/// Amazon EC2's instance types with GPUs. A step's request can be checked against a type, and the
/// types that satisfy a request can be listed.
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
  const char* gpu;                         ///< Model, such as `A10G`.
  unsigned gpu_memory;                     ///< MiB of each GPU.
  settings::ComputeCapability capability;  ///< 0.0 for GPUs of other makers than NVIDIA.
  unsigned vcpus;
  unsigned memory;           ///< MiB.
  const char* architecture;  ///< `x86_64` or `arm64`.
  bool is_nvidia() const { return capability.major > 0; }
};

/// The request of a step or of `pipe instances`; zero and empty members are not requirements.
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
/// Returns null for a name that is not in the table.
const InstanceType* find_instance_type(std::string_view name);
/// Returns true if the table has types of the same family, such as `g5` for `g5.huge`.
bool is_gpu_family(std::string_view name);
/// Returns `did you mean 'g5.xlarge'?`, or an empty text.
std::string similar_instance_type(std::string_view name);

/// Returns the reasons why the type does not suffice, such as `it has 1 GPU, not 4`, if any.
std::vector<std::string> lacks(const InstanceType& type, const InstanceNeeds& needs);
/// Returns the types that suffice, ordered by GPUs, vCPUs and memory, smallest first.
std::vector<InstanceType> fitting_instance_types(const InstanceNeeds& needs);

}  // namespace pipeline::gpu
