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
  std::optional<unsigned> rank = {};  ///< Of a step with nodes.
  std::vector<std::string> command;   ///< Empty: a shell.
  bool has_terminal = false;
};

/// Opens the shell, and returns its exit code: beside the attempt's process while that runs, in its
/// container and folder, else in a place like its own. Throws InputError if there is no such
/// attempt or rank, or if its code or inputs are not on this machine.
core::ExitCode open_shell(Workspace& workspace, const ShellAttempt& wanted);

}  // namespace pipeline::driver
