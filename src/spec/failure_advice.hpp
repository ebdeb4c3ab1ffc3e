/// @file
/// Advice derived from the output of a failed step, for failures that no file of the pipeline's
/// folder explains.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::spec {

/// Returns the package of the Python index that has this module; usually both have the same name.
std::string package_of(std::string_view module);

/// Returns advice if a step failed to write into its code folder, which is read-only.
std::optional<std::string> write_advice(std::string_view output);

}  // namespace pipeline::spec
