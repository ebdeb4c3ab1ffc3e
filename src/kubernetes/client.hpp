/// @file
/// The API of one cluster: requests that are repeated when that may help, answers as JSON, refusals
/// in words. What is safe for all servers from 1.20 on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "async/retry_policy.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "kubernetes/credentials.hpp"
#include "kubernetes/kubeconfig.hpp"
#include "net/http.hpp"

namespace pipeline::kubernetes {

/// One thing that is wrong with an object: `spec.template.spec.tolerations[0].effect`, and why.
struct Cause {
  std::string field, message;
};

/// The server has refused: its Status, whose reason is one of Kubernetes' words (`AlreadyExists`,
/// `Forbidden`, ...).
class ApiError : public core::EnvironmentError {
 public:
  ApiError(long status, std::string reason, const std::string& message,
           std::vector<std::string> advice, std::vector<Cause> causes = {})
      : core::EnvironmentError(message, std::move(advice)),
        status_(status),
        reason_(std::move(reason)),
        causes_(std::move(causes)) {}
  long status() const { return status_; }
  const std::string& reason() const { return reason_; }
  /// Of an object that is `Invalid`.
  const std::vector<Cause>& causes() const { return causes_; }

 private:
  long status_;
  std::string reason_;
  std::vector<Cause> causes_;
};

struct Call {
  // No aggregate: g++ 12 destroys a brace-initialised temporary twice in a co_await expression.
  Call(std::string what_is_tried, std::string http_method, std::string path_and_query)
      : what(std::move(what_is_tried)),
        method(std::move(http_method)),
        path(std::move(path_and_query)) {}
  std::string what;  ///< For messages, after "cannot ": `create the Job x`.
  std::string method;
  std::string path;  ///< `/api/v1/...`, its query encoded.
  nlohmann::json body = nullptr;
  std::string body_type = "application/json";
  std::string accept = "application/json";
  std::chrono::milliseconds timeout{60'000};  ///< Of one try; 0: none (streams).
  std::function<void(std::string_view)> on_body;
  std::function<void()> on_open;  ///< The answer has begun, and is no refusal.
  core::CancelSource* cancel = nullptr;
  std::optional<unsigned> most_tries;  ///< Fewer than the client's own.
};

class Client {
 public:
  Client(asio::io_context& loop, ClusterAccess access, async::RetryPolicy retry_policy = {});

  const ClusterAccess& access() const { return access_; }
  asio::io_context& loop() { return loop_; }
  const async::RetryPolicy& retry_policy() const { return retry_policy_; }

  /// One exchange, without repetition but for credentials that have run out. Throws ApiError,
  /// TransportError.
  async::Task<net::Response> send(Call call);
  /// Repeated when the server is not there, overloaded or broken. May so be done twice: creations
  /// have names of ours, deletions say which object they mean.
  async::Task<nlohmann::json> call(Call call);

  async::Task<nlohmann::json> get(std::string what, std::string path);
  async::Task<nlohmann::json> create(std::string what, std::string path, nlohmann::json object);
  /// Only the object with this uid, if one is given; what is gone already (404), or is another by
  /// now (409), is fine.
  async::Task<> remove(std::string what, std::string path, std::string uid,
                       std::optional<unsigned> grace_seconds);
  /// A JSON merge patch.
  async::Task<nlohmann::json> patch(std::string what, std::string path, nlohmann::json change);

  /// `{"major": 1, "minor": 29}`, asked for once. Throws EnvironmentError for a server that is too
  /// old.
  async::Task<std::pair<int, int>> version();

  /// `/apis/batch/v1/namespaces/NS/jobs`, with `/NAME` if there is one. @param group empty for the
  /// core
  std::string path(std::string_view group, std::string_view kind, std::string_view name = {}) const;

 private:
  async::Task<net::Response> try_once(Call call);
  void show_warnings(const net::Response& response);

  asio::io_context& loop_;
  ClusterAccess access_;
  async::RetryPolicy retry_policy_;
  Credentials credentials_;
  net::HttpClient http_;
  std::optional<std::pair<int, int>> version_;
  std::set<std::string> shown_;  ///< Of the server's warnings.
};

/// Whether a second try may go better.
bool is_retryable(const ApiError& error);
/// What a user may do about a refusal.
std::vector<std::string> advice_for(long status, const std::string& reason,
                                    const std::string& message);
/// `10.0.0.1:6443` of a URL.
std::string host_and_port(const std::string& url);

}  // namespace pipeline::kubernetes
