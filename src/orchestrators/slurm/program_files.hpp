/// @file
/// The files of a C++ program whose functions are steps, where nodes mount them in containers: no
/// image is made for a program.
#pragma once

#include <filesystem>

#include <pipeline/spec.hpp>

namespace pipeline::orchestrators::slurm {

/// Where containers have the program, as images of docker::ProgramImages have it.
inline constexpr const char* program_target = "/pipe/program";

/// Name of the folder of program_folder() in a run's folder.
inline constexpr const char* programs_folder = "programs";

/// Returns a folder with the program's files, in the run's folder. They are copied unless they are
/// there, so that a program that is built again later changes no job of this run. Throws
/// EnvironmentError if one of them is missing.
std::filesystem::path program_folder(const std::filesystem::path& run_folder,
                                     const Program& program);

}  // namespace pipeline::orchestrators::slurm
