/// @file
/// The shell commands that run a step in a SquashFS image on a node: by Apptainer, Enroot,
/// Charliecloud or Podman, none of which needs root or a daemon. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators::slurm {

/// A file or folder of the node that the container has at `target`. Charliecloud ignores
/// `is_read_only`.
struct Bind {
  std::string source, target;
  bool is_read_only = false;
};

/// A container that a node has to start.
struct ContainerStart {
  std::string runtime;  ///< `any`, a name of container_runtimes(), or the path of a program.
  std::string image;    ///< The SquashFS file.
  std::vector<Bind> binds;
  std::vector<std::string> command;  ///< The command that runs in the container.
  bool has_gpus = false;
};

/// Returns the values that the profile's `container_runtime` can have, besides paths of programs.
const std::vector<std::string>& container_runtimes();

/// Throws InputError for a text that does not name a runtime.
void check_container_runtime(const std::string& runtime);

/// Returns shell commands that set the positional parameters ("$@") to the command that runs the
/// container. The commands read the shell's variable `temporary`, which must name a folder with the
/// folders `tmp` and `image`. On a node without the runtime, the commands print that, and call the
/// shell's function `without_container`. Throws EnvironmentError for a path that no runtime can
/// mount.
std::string container_commands(const ContainerStart& start);

}  // namespace pipeline::orchestrators::slurm
