/// @file
/// A shell in a container, for a user whose terminal or pipes are connected with its streams.
#pragma once

#include <cstdint>

namespace pipeline::kubernetes_api {

/// Lengths of frames that stand for themselves: see run_shell().
inline constexpr std::uint32_t shell_begins = 0xffffffff, shell_size = 0xfffffffe,
                               shell_input_ends = 0;

/// Runs the command once the user's end is there, and returns its exit code. Standard input is
/// frames, because a cluster passes on neither its end nor, reliably, the loss of its user: four
/// bytes of length, the first the most significant, and the bytes. Three lengths stand for
/// themselves: `shell_begins`, `shell_size` of a terminal (two bytes of rows and two of columns
/// follow), `shell_input_ends`. The end of the stream is the user's: the command is hung up on.
/// @param has_terminal the command gets a terminal, whose output is written to standard output
int run_shell(bool has_terminal, char** command);

/// Writes the container's termination message, which the driver reads: the command cannot be
/// executed. Returns the exit code.
int write_not_executed(int error);

}  // namespace pipeline::kubernetes_api
