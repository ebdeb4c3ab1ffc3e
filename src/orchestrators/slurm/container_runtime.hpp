/// @file
/// The shell commands that run a step in a SquashFS image on a node: by Apptainer, Enroot,
/// Charliecloud or Podman, none of which needs root or a daemon. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators::slurm {

/// A file or folder of the node in the container. Charliecloud mounts all of them writable.
struct Bind {
  std::string source, target;
  bool is_read_only = false;
};

struct ContainerStart {
  std::string runtime;  ///< `any`, a name of container_runtimes(), or the path of a program.
  std::string image;    ///< The SquashFS file.
  std::vector<Bind> binds;
  std::vector<std::string> command;  ///< In the container.
  bool has_gpus = false;
};

/// Returns the values of the profile's `container_runtime`, besides paths.
const std::vector<std::string>& container_runtimes();

/// Throws InputError for a text that names no runtime.
void check_container_runtime(const std::string& runtime);

/// Returns commands that make the positional parameters those that run the container. The shell's
/// `temporary` is a folder with the folders `tmp` and `image`. Where the node has no runtime, they
/// say so and run the function `without_container`.
/// Throws EnvironmentError for a path that no runtime can mount.
std::string container_commands(const ContainerStart& start);

}  // namespace pipeline::orchestrators::slurm
