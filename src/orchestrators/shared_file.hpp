/// @file
/// Files of a run that other processes use as soon as they exist: programs in containers, pods and
/// jobs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>

namespace pipeline::orchestrators {

/// Mode of a program that everyone may run and nobody may change.
inline constexpr mode_t program_mode = 0555;

/// Writes the file with this mode, and makes its folder; does nothing if the file exists. Another
/// process that finds the file finds it complete and with its mode. Throws EnvironmentError.
void write_shared_file(const std::filesystem::path& file, std::string_view content, mode_t mode);

}  // namespace pipeline::orchestrators
