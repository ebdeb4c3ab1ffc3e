/// @file
/// The program that starts a step's command in its container, so that a stop leaves time to all
/// processes of the step (agent/init.hpp).
#pragma once

#include <filesystem>
#include <string_view>

namespace pipeline::orchestrators::docker_engine {

/// Name of the program's folder in the state folder.
inline constexpr const char* programs_folder = "programs";
/// The program's path in a container.
inline constexpr const char* init_path = "/pipe/init";

/// Writes the program below the state folder and returns its path. Returns an empty path if
/// containers could not execute it: the engine has another architecture, or the file system is
/// mounted `noexec`.
std::filesystem::path init_program(const std::filesystem::path& state,
                                   std::string_view architecture);

}  // namespace pipeline::orchestrators::docker_engine
