/// @file
/// Connections to an engine behind ssh://. Each connection is an ssh process that runs `docker
/// system dial-stdio` on the remote machine, as with docker's own client.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <optional>
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

/// Parses a URL. Throws EnvironmentError for a URL that is malformed, contains a password, or has
/// parts that could be read as an option or as several shell words.
SshTarget parse_ssh_url(const std::string& url);

/// Returns ssh's argument vector. ssh prompts for nothing, so that it cannot hang.
std::vector<std::string> ssh_command(const SshTarget& target);

/// Returns true for ssh's message that the server refuses further connections, because too many are
/// not authenticated yet. No data has been sent in this case.
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
  /// Returns an unconnected socket. Once the caller has connected it to path(), the event loop
  /// starts the process. Intended for callers that insist on connecting by themselves, such as
  /// libcurl (7.88 ignores CURL_SOCKOPT_ALREADY_CONNECTED). Errors are reported by failure_of().
  /// @param executor of the loop, the same one in all calls
  Connection offer(const asio::any_io_executor& executor);
  /// Returns the path of the socket that this process listens on. No other process can connect to
  /// it.
  const std::string& path() const { return path_; }
  /// Returns the output of a failed process, once; empty if the process is running or has
  /// succeeded. Waits at most a second for its end. Throws EnvironmentError if ssh could not be
  /// started.
  async::Task<std::string> failure_of(int number);

 private:
  struct Process {
    net::Child child;
    core::Descriptor errors;
    int number;
  };
  void forget_ended();
  void wait_for_caller();
  bool accept();
  void start_ssh(const asio::any_io_executor& executor, const core::Descriptor& accepted,
                 int number);

  std::vector<std::string> command_;
  core::Descriptor listener_, entry_;  ///< The socket, and its file, which is unlinked.
  std::string path_;
  std::optional<asio::posix::stream_descriptor> listening_;  ///< Waits for `listener_`, and does
                                                             ///< not own it. Unset before an offer.
  bool is_waiting_ = false;
  std::map<std::string, int> offered_;  ///< Numbers of connections, by the name of their socket.
  std::vector<Process> processes_;
  std::map<int, std::exception_ptr> refused_;  ///< Errors of processes that could not be started.
  int opened_ = 0;                             ///< Number of the last connection.
  std::shared_ptr<int> alive_ = std::make_shared<int>();  ///< Observed by handlers of waits.
};

}  // namespace pipeline::docker
