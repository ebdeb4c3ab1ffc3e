/// @file
/// Reads a requirements file as pip does, flattened to a list.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "settings/settings.hpp"

namespace pipeline::spec {

/// Returns the lines of the file and of the files that it includes (`-r`, `-c`), without comments,
/// continuations and repetitions. Errors are reported at `place`, the position of the key that
/// names the file; the message has file and line.
/// @param name the file's name as written, for messages
/// @param sources receives the files that were read or looked for
std::vector<std::string> read_requirements(const std::filesystem::path& file,
                                           const std::string& name, core::Span place,
                                           settings::Diagnostics& diagnostics,
                                           std::set<std::filesystem::path>& sources);

}  // namespace pipeline::spec
