/// @file
/// Advice derived from the output of a failed step, for failures that no file of the pipeline's
/// folder explains.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::spec {

/// Returns advice if a step failed to write into its code folder, which is read-only.
std::optional<std::string> write_advice(std::string_view output);

/// Returns the absolute paths that the step was not permitted to open.
std::vector<std::string> refused_files(std::string_view output);

/// Returns advice for a file outside of the pipeline's folder that a step named by its absolute
/// path; nothing if the file is not on this machine, or belongs to the system.
std::optional<std::string> outside_advice(const std::filesystem::path& file);

}  // namespace pipeline::spec
