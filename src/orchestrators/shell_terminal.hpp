/// @file
/// Connects this process's standard streams with a shell in a container or in a pod.
#pragma once

#include <functional>
#include <string>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include "async/task.hpp"

namespace pipeline::orchestrators {

/// The connection to the shell. Each function returns once it has done its work, or throws.
struct RemoteShell {
  std::function<async::Task<>(std::string bytes)> send;
  std::function<async::Task<>()> end_input;
  std::function<async::Task<>(unsigned rows, unsigned columns)> resize;
  /// Writes what the shell prints to this process's streams; returns when it has closed its output.
  std::function<async::Task<>()> pass_output;
};

/// Connects the streams until the shell has closed its output. A terminal is in raw mode meanwhile:
/// each key is passed on unchanged. Its size is sent first and after each change.
/// @param has_terminal standard input and output are a terminal
async::Task<> connect_terminal(RemoteShell shell, bool has_terminal);

}  // namespace pipeline::orchestrators
