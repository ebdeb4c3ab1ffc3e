/// @file
/// Reads a file of parameters, which replaces many `--param` options.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace pipeline::spec {

/// The parameters of a file, by name.
struct FileParameters {
  /// As `--param` would give them: lists and maps are in one line. A map may be one of a step's own
  /// parameters, below the step's name.
  std::map<std::string, std::string> values;
  std::map<std::string, std::string> places;  ///< For messages: `few.yaml:2:1`.
};

/// Reads the file, YAML or JSON. Throws InputError with all errors of the file, or if there is no
/// such file.
FileParameters load_parameters(const std::filesystem::path& file);

}  // namespace pipeline::spec
