/// @file
/// The files of a C++ program whose functions are steps. Nodes mount them into containers, because
/// no image is made for the program.
#pragma once

#include <filesystem>

#include <pipeline/spec.hpp>

namespace pipeline::orchestrators::slurm {

/// The folder of the program in containers, the same as in images of docker::ProgramImages.
inline constexpr const char* program_target = "/pipe/program";

/// Name of the folder in a run's folder that has the folders of program_folder().
inline constexpr const char* programs_folder = "programs";

/// Returns a folder in the run's folder with copies of the program's files. The first call makes
/// the copies, so that a later build of the program changes no job of this run. Throws
/// EnvironmentError if a file is missing.
std::filesystem::path program_folder(const std::filesystem::path& run_folder,
                                     const Program& program);

}  // namespace pipeline::orchestrators::slurm
