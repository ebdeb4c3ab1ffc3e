/// @file
/// The files with which a job runs an attempt in an image: mount points, variables, and the script
/// that starts the agent in the container.
#pragma once

#include <filesystem>
#include <string>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/slurm/container_runtime.hpp"
#include "orchestrators/slurm/image_files.hpp"
#include "orchestrators/slurm/job_script.hpp"

namespace pipeline::orchestrators::slurm {

/// The programs of jobs in images, the same for all attempts.
struct ImageRuntime {
  std::string program;          ///< See ContainerStart::runtime.
  std::filesystem::path agent;  ///< The agent's program, on the nodes.
};

/// Returns the variables of the attempt's command: the step's, and those that only the image sets.
StringMap image_variables(const AttemptSpec& attempt, const ImageFile& image);

/// Writes the files into the job's folder. Returns the container that the job has to start.
/// @param code the attempt's own copy of its code
ContainerStart write_image_job(const AttemptSpec& attempt, const ImageFile& image,
                               const ImageRuntime& runtime, const JobPaths& paths,
                               const std::filesystem::path& code);

}  // namespace pipeline::orchestrators::slurm
