/// @file
/// Credentials of requests to a cluster: kept while they are valid, fetched again when they expire.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>

#include "async/semaphore.hpp"
#include "kubernetes_api/kubeconfig.hpp"
#include "net/program.hpp"

namespace pipeline::kubernetes_api {

class Credentials {
 public:
  explicit Credentials(const ClusterAccess& access) : access_(access) {}

  /// Adds headers, and a plugin's certificate. Throws EnvironmentError if a plugin fails.
  async::Task<> apply(net::Request& request);
  /// Returns the version of the credentials that apply() added last; newer ones have a greater one.
  unsigned long version() const { return version_; }
  /// Discards the credentials of a version, because the server refused them (401); newer ones stay.
  /// Returns true if fetching them again can help.
  bool discard(unsigned long version);

 private:
  using Clock = std::chrono::steady_clock;
  async::Task<> ask_plugin();
  /// Asks the plugin, or waits until the call that is asking has its answer.
  async::Task<> ask_together();
  void read_token();

  ClusterAccess access_;
  async::Semaphore turn_{1};    ///< Held while the plugin is asked.
  unsigned long version_ = 0;   ///< How often credentials were fetched, with or without success.
  std::exception_ptr failure_;  ///< Failure of the last call of the plugin.
  std::string token_, cert_, key_;            ///< From the kubeconfig or from the plugin.
  std::optional<Clock::time_point> expires_;  ///< Unset before the credentials are fetched.
};

/// The output of a plugin (an ExecCredential): token and certificate of its status.
struct PluginAnswer {
  std::string token, cert, key;
  std::optional<std::chrono::system_clock::time_point> expires;
};
/// Throws EnvironmentError for invalid output.
PluginAnswer parse_plugin_answer(const ExecPlugin& plugin, const std::string& output);
/// Returns the value of the plugin's variable KUBERNETES_EXEC_INFO.
std::string plugin_info(const ClusterAccess& access);

}  // namespace pipeline::kubernetes_api
