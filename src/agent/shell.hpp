/// @file
/// A shell in a container, whose streams are connected with a user's terminal or pipes.
#pragma once

#include <cstdint>

namespace pipeline::agent {

/// Frame lengths with a meaning of their own: see run_shell().
inline constexpr std::uint32_t shell_begins = 0xffffffff, shell_size = 0xfffffffe,
                               shell_input_ends = 0;

/// Runs the command once the user's end is connected, and returns its exit code. Standard input
/// consists of frames, because a cluster forwards neither its end nor, reliably, the loss of the
/// user: a big-endian length of four bytes, and the bytes. Three lengths have a meaning of their
/// own: `shell_begins`, `shell_size` (two bytes of rows and two of columns of the terminal follow),
/// `shell_input_ends`. At the end of the stream, the command gets SIGHUP.
/// @param has_terminal the command gets a terminal, whose output is written to standard output
int run_shell(bool has_terminal, char** command);

/// Tells the driver by a termination message that the command cannot run. Returns the exit code.
int write_not_executed(int error);

}  // namespace pipeline::agent
