/// @file
/// A child process whose end a coroutine can wait for. The child's working folder is `/`, and
/// core::tool_environment() is its environment. This file does not include Boost.Process, whose
/// headers are heavy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "core/error.hpp"

namespace pipeline::net {

struct ChildCall {
  /// The program, found on the PATH if it has no `/`, and its arguments.
  std::vector<std::string> command;
  std::vector<std::string> variables;  ///< `NAME=VALUE`; they replace variables of this process.
  int input, output, errors;  ///< Descriptors that become the child's stdin, stdout and stderr.
  /// Starts the child in a session of its own: no terminal to prompt on, no Ctrl-C. SIGTERM ends
  /// the child when this process dies.
  bool own_session = false;
};

/// No folder of the PATH has the program.
class NotOnPath : public core::EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

class Child {
 public:
  /// Throws NotOnPath, or EnvironmentError if the child cannot be started for another reason. The
  /// message is only the reason, to be put after the program's name: `it is not on the PATH`.
  Child(const asio::any_io_executor& executor, const ChildCall& call);
  ~Child();  ///< Kills and reaps the child if it is still running.
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;

  bool is_running();
  void signal(int number);  ///< Sends the signal if the child has not been reaped.
  void wait();              ///< Blocks until the child has ended.
  async::Task<> ended();    ///< Returns when the child has ended.
  /// Exit code of an ended child; -1 if a signal ended it.
  int exit_code() const;

 private:
  struct Process;
  std::unique_ptr<Process> process_;
};

}  // namespace pipeline::net
