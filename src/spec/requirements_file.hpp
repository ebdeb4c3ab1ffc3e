/// @file
/// Reads requirements files as pip does, into one list.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "settings/settings.hpp"

namespace pipeline::spec {

/// Returns the lines of the file and of the files that it includes (`-r`), without comments,
/// continuations and repetitions. A line of a file with constraints (`-c`) becomes `--constraint
/// numpy<2`. Reports errors at `place`, the position of the key that names the file; the messages
/// have the file and the line.
/// @param name the file's name as written, for messages
/// @param sources receives the files that were read or looked for
std::vector<std::string> read_requirements(const std::filesystem::path& file,
                                           const std::string& name, core::Span place,
                                           settings::Diagnostics& diagnostics,
                                           std::set<std::filesystem::path>& sources);

/// Returns the items of a list with those of the files that the list names (`-r FILE`, `-c FILE`).
/// @param folder the folder that the names of files are relative to
std::vector<std::string> expand_requirements(const std::vector<std::string>& lines,
                                             const std::filesystem::path& folder, core::Span place,
                                             settings::Diagnostics& diagnostics,
                                             std::set<std::filesystem::path>& sources);

}  // namespace pipeline::spec
