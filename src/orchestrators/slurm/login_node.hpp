/// @file
/// The machine on which Slurm's commands run: this one, or one that ssh reaches.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "core/file.hpp"
#include "docker/ssh_connection.hpp"
#include "net/child.hpp"

namespace pipeline::orchestrators::slurm {

class LoginNode {
 public:
  /// @param url `ssh://[USER@]HOST[:PORT]`; empty: this machine. Throws InputError
  explicit LoginNode(const std::string& url);
  ~LoginNode();  ///< Closes the connection of connect().
  LoginNode(const LoginNode&) = delete;
  LoginNode& operator=(const LoginNode&) = delete;

  bool is_remote() const { return !url_.empty(); }
  const std::string& host() const { return target_.host; }
  /// Returns the words that run the command on that machine: each word of the command reaches the
  /// program as it is, whatever shell the user has there.
  std::vector<std::string> words(const std::vector<std::string>& command,
                                 bool has_terminal = false) const;
  /// Opens the connection that all commands share. Before connect(), or after it has failed, each
  /// command opens a connection of its own.
  async::Task<> connect();

 private:
  std::vector<std::string> ssh(const std::vector<std::string>& options) const;

  std::string url_;
  docker::SshTarget target_;
  std::optional<core::TemporaryFolder> folder_;  ///< Has the connection's socket.
  std::optional<net::Child> connection_;
  std::chrono::steady_clock::time_point tried_{};  ///< When connect() last opened a connection.
};

}  // namespace pipeline::orchestrators::slurm
