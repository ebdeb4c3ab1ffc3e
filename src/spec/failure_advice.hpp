/// @file
/// Advice from what a failed step printed, where no file of the pipeline's folder explains it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::spec {

/// The package of the Python index that has this module; mostly of the same name.
std::string package_of(std::string_view module);

/// Advice for a step that failed to write into the folder of its code, which is read-only.
std::optional<std::string> write_advice(std::string_view output);

}  // namespace pipeline::spec
