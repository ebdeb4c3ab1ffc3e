/// @file
/// Checks whether a GPU step's image, Python wheels, driver and GPUs are compatible, as far as this
/// is known before anything is built. Pure.
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
  std::optional<Version> cuda;  ///< The newest version that the driver supports; derived from the
                                ///< driver's version if not reported.
  std::string brand;            ///< Brand for NVIDIA_REQUIRE_CUDA; empty if unknown.
  /// Compute capabilities of the GPUs that the step may get.
  std::vector<settings::ComputeCapability> capabilities;
};

/// The image and the Python packages of a step, as far as CUDA depends on them.
struct CudaFacts {
  std::string image;  ///< Name of the image for messages; empty if the step runs without an image.
  std::optional<ImageCuda> cuda;  ///< Unset if there is no image or its CUDA is unknown.
  std::vector<Wheel> wheels;
  bool may_bring_cuda = false;  ///< The step installs something that cannot be inspected (a
                                ///< Dockerfile, a project, apt packages of CUDA).
};

struct Finding {
  core::Severity severity;
  std::string code;  ///< `cuda-driver`, `cuda-gpu`, `cuda-missing` or `cuda-mismatch`.
  std::string message;
  std::string advice;  ///< The change that the user should make.
  bool operator==(const Finding&) const = default;
};

/// Returns what does not fit together; nothing is reported about facts that are unknown.
std::vector<Finding> check_compatibility(const CudaFacts& facts, const GpuHost& host);

/// Returns the CUDA versions that run on the host, for messages; empty if its driver is unknown.
std::string runnable_cuda(const GpuHost& host);

}  // namespace pipeline::gpu
