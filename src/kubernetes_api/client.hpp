/// @file
/// Client for the API of one cluster: requests with retries, responses as JSON, refusals as
/// messages. Uses only what all servers from 1.20 on support.
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
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "kubernetes_api/credentials.hpp"
#include "kubernetes_api/kubeconfig.hpp"
#include "net/http.hpp"

namespace pipeline::kubernetes_api {

/// An error in an object: a field, `spec.template.spec.tolerations[0].effect`, and the message.
struct Cause {
  std::string field, message;
};

/// The server has refused a request. Has the members of the response's Status, whose reason is one
/// of Kubernetes' constants (`AlreadyExists`, `Forbidden`, ...).
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
  /// Returns the errors of an object that is `Invalid`.
  const std::vector<Cause>& causes() const { return causes_; }

 private:
  long status_;
  std::string reason_;
  std::vector<Cause> causes_;
};

struct ApiCall {
  // A constructor instead of an aggregate, because g++ 12 destroys a brace-initialised temporary
  // twice in a co_await expression.
  ApiCall(std::string what_is_tried, std::string http_method, std::string path_and_query)
      : what(std::move(what_is_tried)),
        method(std::move(http_method)),
        path(std::move(path_and_query)) {}
  std::string what;  ///< Completes the message "cannot ...", for example `create the Job x`.
  std::string method;
  std::string path;  ///< `/api/v1/...` with an encoded query.
  nlohmann::json body = nullptr;
  std::string body_type = "application/json";
  std::string accept = "application/json";
  std::chrono::milliseconds timeout{60'000};  ///< Limit of one try; 0: no limit (streams).
  std::function<void(std::string_view)> on_body;
  std::function<void()> on_open;  ///< Called when a successful response has begun.
  core::CancelSource* cancel = nullptr;
  std::optional<unsigned> max_tries;  ///< In place of the number of the client's policy.
  /// Limit of RetryPolicy::for_short_wait(), for a caller that does not wait for long.
  std::optional<unsigned> max_unanswered;
};

class Client {
 public:
  Client(asio::io_context& loop, ClusterAccess access, async::RetryPolicy retry_policy = {});

  const ClusterAccess& access() const { return access_; }
  asio::io_context& loop() { return loop_; }
  /// From now on, `cancel` stops each call() that has no source of its own; null: nothing does.
  void stop_calls_by(core::CancelSource* cancel) { stop_ = cancel; }
  const async::RetryPolicy& retry_policy() const { return retry_policy_; }

  /// Returns the request as it would be sent, with credentials.
  async::Task<net::Request> request_of(ApiCall call);
  /// Sends a request once; repeats it only if the credentials have expired. Throws ApiError,
  /// TransportError.
  async::Task<net::Response> send(ApiCall call);
  /// Sends a request and retries it when the server is unreachable, overloaded or broken. Requests
  /// may therefore be executed twice: creations use fixed names, and deletions name the object's
  /// uid.
  async::Task<nlohmann::json> call(ApiCall call);

  async::Task<nlohmann::json> get(std::string what, std::string path);
  async::Task<nlohmann::json> create(std::string what, std::string path, nlohmann::json object);
  /// Deletes an object; if `uid` is not empty, only an object with this uid. An object that no
  /// longer exists (404) or was replaced (409) is not an error.
  async::Task<> remove(std::string what, std::string path, std::string uid,
                       std::optional<unsigned> grace_seconds);
  /// Applies a JSON merge patch.
  async::Task<nlohmann::json> patch(std::string what, std::string path, nlohmann::json change);

  /// Returns the server's version, such as `{"major": 1, "minor": 29}`; requested once. Throws
  /// EnvironmentError for a server that is too old.
  async::Task<std::pair<int, int>> version();

  /// Returns `/apis/batch/v1/namespaces/NS/jobs`, with `/NAME` if a name is given. @param group
  /// empty for the core group
  std::string path(std::string_view group, std::string_view kind, std::string_view name = {}) const;

 private:
  /// @param version receives the version of the credentials (Credentials::version())
  async::Task<net::Response> try_once(ApiCall call, unsigned long& version);
  void show_warnings(const net::Response& response);

  asio::io_context& loop_;
  ClusterAccess access_;
  async::RetryPolicy retry_policy_;
  core::CancelSource* stop_ = nullptr;
  Credentials credentials_;
  net::HttpClient http_;
  std::optional<std::pair<int, int>> version_;
  std::set<std::string> shown_;  ///< Warnings of the server that the user has seen.
};

/// Throws the ApiError for a response. @param what completes the message "cannot ..."
[[noreturn]] void throw_refusal(const std::string& what, const net::Response& response);
/// Returns true if a retry can succeed.
bool is_retryable(const ApiError& error);
/// Returns advice for a refusal.
std::vector<std::string> advice_for(long status, const std::string& reason,
                                    const std::string& message);
/// Returns `10.0.0.1:6443` for a URL.
std::string host_and_port(const std::string& url);

}  // namespace pipeline::kubernetes_api
