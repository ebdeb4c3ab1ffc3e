/// @file
/// A function for a job's script that runs an image by Podman, without root, in a batch job that
/// has no login session. Pure.
#pragma once

namespace pipeline::orchestrators::slurm {

/// Defines `in_podman PROGRAM IMAGE WORD...`. The function puts the files of a SquashFS image into
/// the folder `image` of the shell's `temporary`, runs `PROGRAM run WORD...`, and returns when no
/// process of the container runs any more. The files are mounted if the node can do that without
/// root, else unpacked once for each node. SIGTERM and SIGURG go to the process whose number is in
/// the file `podman/agent`, or to Podman while that file does not exist.
extern const char* const podman_function;

}  // namespace pipeline::orchestrators::slurm
