/// @file
/// Connections to an engine behind ssh://. Each is a ssh process that runs `docker system
/// dial-stdio` on the remote machine, as with docker's own client.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.hpp"
#include "core/file.hpp"
#include "net/child.hpp"

namespace pipeline::docker {

/// The parts of `ssh://[USER@]HOST[:PORT][/SOCKET]`; missing parts are empty.
struct SshTarget {
  std::string user, host, port, socket;
  bool operator==(const SshTarget&) const = default;
};

/// Throws EnvironmentError for a URL that is malformed, contains a password, or has parts that
/// could be read as an option or as several shell words.
SshTarget parse_ssh_url(const std::string& url);

/// Returns ssh's argument vector. ssh prompts for nothing, so that it cannot hang.
std::vector<std::string> ssh_command(const SshTarget& target);

/// Returns true for ssh's message that the other side has too many unauthenticated connections; no
/// data has been sent then.
bool is_crowded(std::string_view failure);

class SshConnections {
 public:
  /// Throws EnvironmentError if it cannot make its socket.
  explicit SshConnections(const SshTarget& target);
  ~SshConnections();  ///< Ends all processes.
  SshConnections(const SshConnections&) = delete;
  SshConnections& operator=(const SshConnections&) = delete;

  struct Connection {
    core::Descriptor socket;  ///< Its other end is the process's stdin and stdout.
    int number;               ///< Identifies the process for failure_of(); from 1.
  };
  /// Returns an unconnected socket; connecting it to path() before the loop continues starts the
  /// process. For callers that connect by themselves, such as libcurl (7.88 ignores
  /// CURL_SOCKOPT_ALREADY_CONNECTED). Errors are reported by failure_of().
  Connection offer(const asio::any_io_executor& executor);
  /// The path of the socket that this process listens on; no other process can connect to it.
  const std::string& path() const { return path_; }
  /// Returns a failed process's output, once; empty if it is running or has succeeded. Waits
  /// briefly for its end. Throws EnvironmentError if ssh could not be started.
  async::Task<std::string> failure_of(int number);

 private:
  struct Process {
    net::Child child;
    core::Descriptor errors;
    int number;
  };
  void forget_ended();
  void accept(const asio::any_io_executor& executor);
  void run(const asio::any_io_executor& executor, const core::Descriptor& theirs, int number);

  std::vector<std::string> command_;
  core::Descriptor listener_, entry_;  ///< The socket, and its file, which is unlinked.
  std::string path_;
  std::map<std::string, int> offered_;  ///< Keyed by the name of the socket that is to connect.
  std::vector<Process> processes_;
  std::map<int, std::exception_ptr> refused_;  ///< Errors of processes that could not be started.
  int opened_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace pipeline::docker
