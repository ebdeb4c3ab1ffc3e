/// @file
/// A short program of somebody else's (a credential helper, a kubeconfig's plugin), run beside the
/// loop: asked something, it answers and ends.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"

namespace pipeline::net {

struct ProgramCall {
  std::vector<std::string>
      command;  ///< The program, found on the PATH if it has no `/`, and its arguments.
  std::vector<std::string> variables;  ///< `NAME=VALUE`, over the caller's own.
  std::string input;                   ///< What it reads from its stdin.
  std::chrono::milliseconds timeout{30'000};
};

struct ProgramAnswer {
  std::string output, errors;  ///< What it wrote to stdout and stderr; at most 1 MiB each.
  int code = 0;                ///< Its exit code; -1: a signal ended it.
  bool late = false;           ///< It had to be killed after the timeout.
};

/// Throws EnvironmentError if it cannot be started: `it is not on the PATH`.
async::Task<ProgramAnswer> run_program(ProgramCall call);

}  // namespace pipeline::net
