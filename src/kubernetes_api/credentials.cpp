#include "kubernetes_api/credentials.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"
#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr auto token_file_age = 60s;   // Same as client-go.
constexpr auto before_expiry = 10s;    // Margin for the duration of a request.
constexpr auto plugin_timeout = 120s;  // The plugin may open a browser for a login.

/// Returns the error of a plugin that has given no credentials.
core::EnvironmentError plugin_error(const ExecPlugin& plugin, const std::string& why) {
  std::vector<std::string> advice;
  if (!plugin.install_hint.empty()) advice.push_back(plugin.install_hint);
  advice.push_back(
      "`kubectl get pods` runs the same program: if that fails, too, ask your provider");
  return core::EnvironmentError("the program '" + plugin.command.front() +
                                    "', which the kubeconfig names for credentials, " + why,
                                std::move(advice));
}

}  // namespace

std::string plugin_info(const ClusterAccess& access) {
  json info{{"apiVersion", access.identity.exec->api_version},
            {"kind", "ExecCredential"},
            {"spec", {{"interactive", false}}}};
  if (access.identity.exec->wants_cluster) {
    json cluster{{"server", access.server}};
    if (!access.tls.ca.empty())
      cluster["certificate-authority-data"] = core::encode_base64(access.tls.ca);
    if (access.tls.ca.empty() && !access.tls.ca_file.empty())
      cluster["certificate-authority-data"] =
          core::encode_base64(core::read_file(access.tls.ca_file));
    if (!access.tls.verify) cluster["insecure-skip-tls-verify"] = true;
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (!access.proxy.empty()) cluster["proxy-url"] = access.proxy;
    info["spec"]["cluster"] = std::move(cluster);
  }
  return info.dump();
}

PluginAnswer parse_plugin_answer(const ExecPlugin& plugin, const std::string& output) {
  const auto refusal = [&](const std::string& why) { return plugin_error(plugin, why); };
  const auto credential = core::parse_json(output);
  if (!credential.is_object() || text_at(credential, "/kind") != "ExecCredential")
    throw refusal("gave an answer that is not an ExecCredential");
  if (text_at(credential, "/apiVersion") != plugin.api_version)
    throw refusal("answers with apiVersion '" + text_at(credential, "/apiVersion") +
                  "', and the kubeconfig says " + plugin.api_version);
  PluginAnswer answer{text_at(credential, "/status/token"),
                      text_at(credential, "/status/clientCertificateData"),
                      text_at(credential, "/status/clientKeyData"),
                      {}};
  if (answer.token.empty() && answer.cert.empty())
    throw refusal("gave neither a token nor a certificate");
  if (answer.cert.empty() != answer.key.empty())
    throw refusal("gave a certificate without a key, or a key without a certificate");
  if (const auto expires = text_at(credential, "/status/expirationTimestamp"); !expires.empty()) {
    answer.expires = parse_time(expires);
    if (!answer.expires)
      throw refusal("gave an expirationTimestamp that is not a time: " + expires);
  }
  return answer;
}

async::Task<> Credentials::ask_plugin() {
  const auto& plugin = *access_.identity.exec;
  net::ProgramCall call;
  call.command = plugin.command;
  call.variables = plugin.variables;
  call.variables.push_back("KUBERNETES_EXEC_INFO=" + plugin_info(access_));
  call.timeout = plugin_timeout;
  net::ProgramAnswer result;
  try {
    result = co_await net::run_program(std::move(call));
  } catch (const core::EnvironmentError& error) {
    throw plugin_error(plugin, std::string("cannot be asked: ") + error.what());
  }
  if (result.late)
    throw plugin_error(plugin,
                       "gave no answer within " + std::to_string(plugin_timeout / 1s) + " s");
  if (result.code != 0) {
    const auto words = core::trimmed(result.errors);
    throw plugin_error(
        plugin, std::string("failed") +
                    (result.code > 0 ? " with exit code " + std::to_string(result.code) : "") +
                    (words.empty() ? "" : ": " + std::string(words.substr(0, 500))));
  }
  auto answer = parse_plugin_answer(plugin, result.output);
  token_ = std::move(answer.token);
  cert_ = std::move(answer.cert);
  key_ = std::move(answer.key);
  expires_ = Clock::time_point::max();
  if (answer.expires)
    expires_ =
        Clock::now() + std::max<Clock::duration>(
                           *answer.expires - std::chrono::system_clock::now() - before_expiry, 0s);
}

async::Task<> Credentials::ask_together() {
  const auto before = version_;
  co_await turn_.acquire(0);
  const async::Permit permit(turn_);
  if (version_ == before) {
    failure_ = nullptr;
    try {
      co_await ask_plugin();
    } catch (...) {
      failure_ = std::current_exception();
    }
    ++version_;
  }
  if (failure_) std::rethrow_exception(failure_);
}

void Credentials::read_token() {
  const auto& identity = access_.identity;
  try {
    token_ = std::string(core::trimmed(core::read_file(identity.token_file)));
  } catch (const core::EnvironmentError&) {
    if (token_.empty()) token_ = identity.token;
    if (token_.empty()) throw;
  }
  expires_ = Clock::now() + token_file_age;
  ++version_;
}

async::Task<> Credentials::apply(net::Request& request) {
  const auto& identity = access_.identity;
  const bool is_stale = !expires_ || Clock::now() >= *expires_;
  if (identity.exec && is_stale) co_await ask_together();
  if (!identity.exec && !identity.token_file.empty() && is_stale) read_token();
  const auto& token = identity.exec || !identity.token_file.empty() ? token_ : identity.token;
  if (!token.empty())
    request.headers.push_back("Authorization: Bearer " + token);
  else if (!identity.username.empty())
    request.headers.push_back("Authorization: Basic " +
                              core::encode_base64(identity.username + ":" + identity.password));
  for (const auto& header : identity.impersonate) request.headers.push_back(header);
  if (!cert_.empty()) {
    request.tls.cert = cert_;
    request.tls.key = key_;
  }
}

bool Credentials::discard(unsigned long version) {
  if (version == version_) expires_.reset();
  return access_.identity.exec || !access_.identity.token_file.empty();
}

}  // namespace pipeline::kubernetes_api
