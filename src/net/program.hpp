/// @file
/// Runs a short external program beside the event loop, such as a credential helper or a
/// kubeconfig's plugin. The program reads its input, prints an answer and ends.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"

namespace pipeline::net {

struct ProgramCall {
  /// The program, found on the PATH if it has no `/`, and its arguments.
  std::vector<std::string> command;
  std::vector<std::string> variables;  ///< `NAME=VALUE`; they replace variables of this process.
  std::string input;                   ///< The content of its stdin.
  std::chrono::milliseconds timeout{30'000};
};

struct ProgramAnswer {
  std::string output;  ///< The content of stdout; at most 16 MiB.
  std::string errors;  ///< The content of stderr; at most 1 MiB.
  int code = 0;        ///< Exit code; -1 if a signal ended the program.
  bool late = false;   ///< The program was killed after the timeout.
};

/// Throws EnvironmentError if the program cannot be started. The message is only the reason, to be
/// put after the program's name and a colon: `it is not on the PATH`.
async::Task<ProgramAnswer> run_program(ProgramCall call);

}  // namespace pipeline::net
