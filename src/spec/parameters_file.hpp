/// @file
/// Reads a file of parameters, which replaces many `--param` options.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace pipeline::spec {

/// Returns the values by name, as `--param` would give them: lists and maps are in one line. A map
/// may be one of a step's own parameters, below the step's name. Throws InputError with all errors
/// of the file, or if there is no such file.
std::map<std::string, std::string> load_parameters(const std::filesystem::path& file);

}  // namespace pipeline::spec
