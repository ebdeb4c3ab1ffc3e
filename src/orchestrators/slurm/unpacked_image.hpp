/// @file
/// The shell script that runs programs in the unpacked files of an image, as root in a user
/// namespace: by Apptainer or Charliecloud, neither of which needs root or a daemon. Pure.
#pragma once

#include <string>
#include <vector>

namespace pipeline::orchestrators::slurm {

/// A script for `/bin/sh` in the container, below its folder /pipe.
struct ImageScript {
  std::string name;
  bool is_writable = false;  ///< The script's changes to the image are kept.
};

/// Returns the programs that can be the runtime, in the order of preference. Empty for a runtime
/// that cannot change an image.
/// @param wanted the profile's `container_runtime`
std::vector<std::string> building_runtimes(const std::string& wanted);

/// Returns a shell script that unpacks the image into the folder `root`, and runs the scripts in
/// it. The working folder must have the folders `pipe` and `tmp`, which the container has as /pipe
/// and /tmp. Files that the scripts change get fixed times, so that equal work makes equal files.
/// The exit code is no_runtime_code if there is no runtime.
/// @param image the SquashFS file
std::string unpacked_image_script(const std::string& image,
                                  const std::vector<std::string>& runtimes,
                                  const std::vector<ImageScript>& scripts);

inline constexpr int no_runtime_code = 3;

}  // namespace pipeline::orchestrators::slurm
