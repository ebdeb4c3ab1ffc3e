/// @file
/// A shell in a container, for a user whose terminal or pipes are connected with its streams.
#pragma once

namespace pipeline::kubernetes {

/// Runs the command once the user's end is there, and returns its exit code. Standard input is
/// frames, because a cluster passes on neither its end nor, reliably, the loss of its user: four
/// bytes of length, the first the most significant, and the bytes. Three lengths stand for
/// themselves: 0xffffffff for the beginning, 0xfffffffe for a terminal's size (two bytes of rows
/// and two of columns follow), 0 for the end of the input. The end of the stream is the user's: the
/// command is hung up on.
/// @param has_terminal the command gets a terminal, whose output is written to standard output
int run_shell(bool has_terminal, char** command);

/// Writes the container's termination message, which the driver reads: the command cannot be
/// executed. Returns the exit code.
int write_not_executed(int error);

}  // namespace pipeline::kubernetes
