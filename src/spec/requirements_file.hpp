/// @file
/// A requirements file as pip reads it, flattened to a list.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "settings/settings.hpp"

namespace pipeline::spec {

/// The lines of the file with those of the files that it includes (`-r`, `-c`); comments,
/// continuations and repetitions resolved. What is wrong is reported at `place`, the key that names
/// the file, with file and line in the message. @param name as written, for messages
/// @param sources receives the files that were looked at
std::vector<std::string> read_requirements(const std::filesystem::path& file,
                                           const std::string& name, core::Span place,
                                           settings::Diagnostics& diagnostics,
                                           std::set<std::filesystem::path>& sources);

}  // namespace pipeline::spec
