/// @file
/// Opens a shell with a recorded attempt's code, inputs, image and variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "driver/workspace.hpp"

namespace pipeline::driver {

struct ShellAttempt {
  std::string run, step;              ///< As the user names them.
  unsigned number = 0;                ///< Number of the attempt; 0: the last one.
  std::optional<unsigned> rank = {};  ///< Rank of the process, for a step with nodes.
  std::vector<std::string> command;   ///< Runs in place of a shell, unless empty.
  bool has_terminal = false;
};

/// Opens the shell, and returns its exit code. While the attempt runs, the shell runs in its
/// container and folder; later, in a new environment like the attempt's. Throws InputError if there
/// is no such attempt or rank, or if its code or inputs are not on this machine.
core::ExitCode open_shell(Workspace& workspace, const ShellAttempt& wanted);

}  // namespace pipeline::driver
