/// @file
/// How a node runs an image by Podman, without root, in a batch job that has no session: a function
/// for the job's script. Pure.
#pragma once

namespace pipeline::orchestrators::slurm {

/// Defines `in_podman PROGRAM IMAGE WORD...`, which runs `PROGRAM run WORD...` with the files of a
/// SquashFS image in the folder `image` of the shell's `temporary`, and returns when nothing of it
/// runs any more. They are mounted where the node can do so without root, else unpacked once for
/// each node. SIGTERM and SIGURG go to the process whose number is in
/// the file `podman/agent`, or to Podman where there is none yet.
extern const char* const podman_function;

}  // namespace pipeline::orchestrators::slurm
