/// @file
/// Whether a GPU step's image, Python wheels, driver and GPUs go together, as far as that can be
/// said before anything is built. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/diagnostic.hpp"
#include "gpu/image_cuda.hpp"
#include "gpu/require_cuda.hpp"
#include "gpu/wheels.hpp"

namespace pipeline::gpu {

/// The machine that the step will run on, as far as it is known.
struct GpuHost {
  std::optional<Version> driver;
  std::optional<Version>
      cuda;  ///< The newest that the driver supports; by the driver's version where nobody says.
  std::string brand;  ///< For NVIDIA_REQUIRE_CUDA; empty: not known.
  std::vector<settings::ComputeCapability> capabilities;  ///< Of the GPUs that the step may get.
};

struct CudaFacts {
  std::string image;              ///< Its name, for messages. Empty: the step runs in no image.
  std::optional<ImageCuda> cuda;  ///< Nothing: no image, or nobody can say.
  std::vector<Wheel> wheels;
  bool may_bring_cuda = false;  ///< Something else is installed that cannot be looked into (a
                                ///< Dockerfile, a project, apt packages of CUDA).
};

struct Finding {
  core::Severity severity;
  std::string code;  ///< `cuda-driver`, `cuda-gpu`, `cuda-missing` or `cuda-mismatch`.
  std::string message;
  std::string advice;  ///< What to change.
  bool operator==(const Finding&) const = default;
};

std::vector<Finding> check_compatibility(const CudaFacts& facts, const GpuHost& host);

/// For people: which CUDA runs on the host. Empty where its driver is not known.
std::string runnable_cuda(const GpuHost& host);

}  // namespace pipeline::gpu
