/// @file
/// The program that starts a step's command in its container, so that a stop leaves time to all
/// processes of the step (agent/init.hpp).
#pragma once

#include <filesystem>
#include <string_view>

namespace pipeline::orchestrators::docker_engine {

/// Folder of the state folder for the program.
inline constexpr const char* programs_folder = "programs";
/// The program's path in a container.
inline constexpr const char* init_path = "/pipe/init";

/// Returns the program's file, which is made below the state folder; empty where containers could
/// not execute it: on an engine of another architecture, and from a file system without programs.
std::filesystem::path init_program(const std::filesystem::path& state,
                                   std::string_view architecture);

}  // namespace pipeline::orchestrators::docker_engine
