/// @file
/// NVIDIA_REQUIRE_CUDA and its like: what an image demands of the driver. The NVIDIA container
/// toolkit refuses to start a container whose demands are not met ("unsatisfied condition: ...").
/// Grammar (nvidia-container-toolkit, internal/requirements/constraints): alternatives are
/// separated by spaces, what has to hold together by commas, each `PROPERTY OPERATOR VALUE` as in
/// `cuda>=12.2 brand=tesla,driver>=470,driver<471`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpu/version.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::gpu {

/// What the demands are compared with; nothing: not known.
struct DriverFacts {
  std::optional<Version> driver;
  std::optional<Version> cuda;  ///< The newest CUDA that the driver supports.
  std::string brand;            ///< `tesla`, `geforce`, ..., or empty: not known.
  std::optional<settings::ComputeCapability> capability;
};

struct RequireVerdict {
  enum class Kind { satisfied, unsatisfied, unknown, malformed };
  Kind kind = Kind::satisfied;
  std::string condition;  ///< Unsatisfied: the first demand that failed, as the toolkit names it.
                          ///< Malformed: the part.
};

RequireVerdict check_require_cuda(std::string_view text, const DriverFacts& facts);

}  // namespace pipeline::gpu
