/// @file
/// An engine behind ssh://: each connection is a ssh process that runs `docker system dial-stdio`
/// over there, as with docker's own client.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "async/task.hpp"
#include "core/file.hpp"
#include "net/child.hpp"

namespace pipeline::docker {

/// Of `ssh://[USER@]HOST[:PORT][/SOCKET]`; what is not given is empty.
struct SshTarget {
  std::string user, host, port, socket;
  bool operator==(const SshTarget&) const = default;
};

/// Throws EnvironmentError for what is malformed, holds a password, or could be taken for an option
/// or by a shell for more than a word.
SshTarget parse_ssh_url(const std::string& url);

/// The argument vector of ssh: it asks for nothing, so that it cannot hang.
std::vector<std::string> ssh_command(const SshTarget& target);

/// True for what ssh says when the other side has too many connections that have not logged in yet:
/// nothing has been sent.
bool is_crowded(std::string_view failure);

class SshConnections {
 public:
  explicit SshConnections(const SshTarget& target) : command_(ssh_command(target)) {}
  ~SshConnections();  ///< Ends all processes.
  SshConnections(const SshConnections&) = delete;
  SshConnections& operator=(const SshConnections&) = delete;

  struct Connection {
    core::Descriptor socket;  ///< Its other end is the process's stdin and stdout.
    int number;               ///< The process, for failure_of(). From 1.
  };
  /// A socket that is not connected yet, and the address to connect it to before the loop goes on:
  /// then its process is started. For who insists on connecting, as libcurl does (7.88 does not
  /// heed CURL_SOCKOPT_ALREADY_CONNECTED). What goes wrong then is failure_of()'s to tell.
  Connection offer(const asio::any_io_executor& executor, sockaddr& address, unsigned& length);
  /// What the process said if it has failed; empty if it lives or has ended well. Waits a moment
  /// for an end. Throws EnvironmentError if ssh could not be started. Told once.
  async::Task<std::string> failure_of(int number);

 private:
  struct Process {
    net::Child child;
    core::Descriptor errors;
    int number;
  };
  void forget_ended();
  void run(const asio::any_io_executor& executor, const core::Descriptor& theirs, int number);

  std::vector<std::string> command_;
  std::vector<Process> processes_;
  std::map<int, std::exception_ptr> refused_;  ///< What could not be started.
  int opened_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace pipeline::docker
