/// @file
/// A child process that the loop can wait for. Boost.Process is behind it, whose headers are heavy.
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
  std::vector<std::string> variables;  ///< `NAME=VALUE`, over the caller's own.
  int input, output, errors;           ///< Descriptors that become its stdin, stdout and stderr.
  /// It gets a session of its own: no terminal to ask on, no Ctrl-C. SIGTERM ends it when the
  /// caller's process dies.
  bool own_session = false;
};

class NotOnPath : public core::EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

class Child {
 public:
  /// Throws NotOnPath, or EnvironmentError if it cannot be started for another reason.
  Child(const asio::any_io_executor& executor, const ChildCall& call);
  ~Child();  ///< Kills and reaps it if it still runs.
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;

  bool is_running();
  void signal(int number);  ///< Sends it, if the child has not been reaped.
  void wait();              ///< Blocks until it has ended.
  async::Task<> ended();    ///< Returns when it has ended.
  /// Of a child that has ended: its exit code; -1 if a signal ended it.
  int exit_code() const;

 private:
  struct Process;
  std::unique_ptr<Process> process_;
};

}  // namespace pipeline::net
