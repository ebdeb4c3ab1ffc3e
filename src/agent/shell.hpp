/// @file
/// A shell in a container, whose streams are connected with a user's terminal or pipes.
#pragma once

#include <cstdint>

namespace pipeline::agent {

/// Frame lengths that are commands instead of lengths: see run_shell().
inline constexpr std::uint32_t shell_begins = 0xffffffff, shell_size = 0xfffffffe,
                               shell_input_ends = 0;

/// Runs the command once `shell_begins` has arrived, and returns the command's exit code, or 125 if
/// no terminal or process can be made, or the user is gone before `shell_begins`. Standard
/// input consists of frames, because a cluster does not forward the end of the input, and does not
/// reliably forward the loss of the user's connection. A frame is a big-endian length of four bytes
/// and the bytes. Three lengths are commands: `shell_begins`, `shell_size` (two bytes of rows and
/// two of columns of the terminal follow), and `shell_input_ends`. At the end of the stream, the
/// command gets SIGHUP.
/// @param has_terminal the command gets a terminal, whose output is written to standard output
int run_shell(bool has_terminal, char** command);

}  // namespace pipeline::agent
