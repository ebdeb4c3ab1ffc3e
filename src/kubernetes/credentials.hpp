/// @file
/// What a request carries to say who it is from: kept as long as it is good, fetched anew when it
/// is not.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kubernetes/kubeconfig.hpp"
#include "net/program.hpp"

namespace pipeline::kubernetes {

class Credentials {
 public:
  explicit Credentials(const ClusterAccess& access) : access_(access) {}

  /// Adds headers, and the certificate that a plugin has given. Throws EnvironmentError if a plugin
  /// gives none.
  async::Task<> apply(net::Request& request);
  /// The server has refused them (401). True if fetching them anew may help.
  bool refused();

 private:
  using Clock = std::chrono::steady_clock;
  async::Task<> ask_plugin();
  void read_token();

  ClusterAccess access_;
  std::string token_, cert_, key_;          ///< Of the file, or of the plugin.
  std::optional<Clock::time_point> until_;  ///< Unset: they have to be fetched first.
};

/// What a plugin wrote (an ExecCredential): the token and certificate of its status.
struct PluginAnswer {
  std::string token, cert, key;
  std::optional<std::chrono::system_clock::time_point> expires;
};
/// Throws EnvironmentError for what is no such answer.
PluginAnswer parse_plugin_answer(const ExecPlugin& plugin, const std::string& output);
/// What it is told, in the variable KUBERNETES_EXEC_INFO.
std::string plugin_info(const ClusterAccess& access);

}  // namespace pipeline::kubernetes
