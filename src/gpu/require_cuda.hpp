/// @file
/// Evaluates NVIDIA_REQUIRE_CUDA and similar variables, an image's requirements on the driver. The
/// NVIDIA container toolkit refuses to start a container whose requirements are not met
/// ("unsatisfied condition: ..."). Grammar (nvidia-container-toolkit,
/// internal/requirements/constraints): spaces separate alternatives, commas separate conditions
/// that must all hold; each condition is `PROPERTY OPERATOR VALUE`, as in `cuda>=12.2
/// brand=tesla,driver>=470,driver<471`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpu/version.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::gpu {

/// The facts that the requirements are compared with; unset members are unknown.
struct DriverFacts {
  std::optional<Version> driver;
  std::optional<Version> cuda;  ///< The newest CUDA that the driver supports.
  std::string brand;            ///< `tesla`, `geforce`, ..., or empty if unknown.
  std::optional<settings::ComputeCapability> capability;
};

/// Whether requirements hold; `unknown` if that depends on a fact that is not known.
struct RequireVerdict {
  enum class Kind { satisfied, unsatisfied, unknown, malformed };
  Kind kind = Kind::satisfied;
  std::string condition;  ///< If unsatisfied: the first condition that failed, in the toolkit's
                          ///< notation. If malformed: the invalid part.
};

/// Returns whether the requirements hold.
/// @param text value of the variable
RequireVerdict check_require_cuda(std::string_view text, const DriverFacts& facts);

}  // namespace pipeline::gpu
