/// @file
/// The connection to one engine: negotiates the version once and explains errors.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "docker/engine_api.hpp"
#include "docker/ssh_connection.hpp"
#include "net/connection.hpp"

namespace pipeline::docker {

/// One request; `path` is below the API version and has an encoded query.
struct EngineCall {
  // A constructor instead of an aggregate, because g++ 12 destroys a brace-initialised temporary
  // twice in a co_await expression.
  EngineCall(std::string what_is_tried, std::string http_method, std::string path_and_query)
      : what(std::move(what_is_tried)),
        method(std::move(http_method)),
        path(std::move(path_and_query)) {}
  std::string what;  ///< Completes the message "cannot ...", for example `start the container x`.
  std::string method;
  std::string path;
  nlohmann::json body = nullptr;
  std::vector<std::string> headers;
  std::string registry = "REGISTRY";        ///< Registry that the engine contacts, for advice.
  std::function<net::BodySource()> source;  ///< Creates the source of a body that is streamed.
  bool repeatable = true;                   ///< `source` can be called again.
  std::function<void(std::string_view)> on_body;         ///< As in net::HttpClient::send().
  std::function<void(const net::Response&)> on_headers;  ///< Called once the status is known.
  core::CancelSource* cancel = nullptr;                  ///< Aborts the exchange.
  core::CancelSource* retry_cancel = nullptr;            ///< Ends the retries.
  bool retried = true;                ///< Failures are retried, but never those of a stream
                                      ///< with `on_body`.
  unsigned slowness = 1;              ///< Factor of the time limit.
  std::chrono::seconds more_time{0};  ///< Added to the time limit.
  /// Called before a retry: returns the response if the lost try has succeeded.
  std::function<async::Task<std::optional<net::Response>>()> earlier_success;
  /// The response has no time limit; the engine is checked while the stream lasts.
  bool stream = false;
  bool opens_at_once = false;    ///< The stream's headers must arrive within the time limit.
  std::string probe = "/_ping";  ///< Path that the check of a stream requests.
  /// Decides from the check's response whether the stream should have ended.
  std::function<bool(const net::Response&)> is_over;
};

class EngineConnection {
 public:
  /// @param run_cancel cancels the lookups that prepare a run; may be null
  EngineConnection(asio::io_context& loop, Endpoint endpoint, EngineLimits limits = {},
                   core::CancelSource* run_cancel = nullptr)
      : loop_(loop),
        endpoint_(std::move(endpoint)),
        limits_(limits),
        run_cancel_(run_cancel),
        http_(loop),
        infos_(loop) {}
  const Endpoint& endpoint() const { return endpoint_; }
  const EngineLimits& limits() const { return limits_; }
  asio::io_context& loop() { return loop_; }
  core::CancelSource* run_cancel() { return run_cancel_; }

  async::Task<const EngineInfo*> info();
  /// Returns the response if its status is below 300, or 304. Throws EngineError for other
  /// statuses, and EnvironmentError if the engine cannot be reached. Requests that are not streams
  /// are retried within the limits first.
  async::Task<net::Response> send(EngineCall call);
  /// Returns the response of send() as JSON; null for an empty response.
  async::Task<nlohmann::json> send_json(EngineCall call);
  /// Opens a connection over which another protocol is spoken after a first request. Throws
  /// EnvironmentError.
  std::unique_ptr<net::Connection> open();

 private:
  inline static const std::string the_engine;  ///< The only key of `infos_`.
  /// Null before the first successful negotiate().
  const EngineInfo* known_info() const { return infos_.find(the_engine); }
  net::Request request(const std::string& path);
  /// Makes one exchange. A failed ssh connection is explained by ssh's output, or made again if the
  /// ssh server had too many connections.
  async::Task<net::Response> exchange(net::Request prepared, const EngineCall& call);
  /// Makes one exchange of a stream. Throws TransportError if the engine hangs meanwhile.
  async::Task<net::Response> exchange_stream(net::Request prepared, const EngineCall& call);
  struct StreamWatch;
  async::Task<> watch_stream(StreamWatch& watch);
  /// Sends a request whose path has no API version.
  async::Task<net::Response> ask(std::string path);
  async::Task<EngineInfo> negotiate();

  asio::io_context& loop_;
  Endpoint endpoint_;
  EngineLimits limits_;
  core::CancelSource* run_cancel_;
  /// Created when needed. Declared before `http_`, because the client closes its connections first.
  std::unique_ptr<SshConnections> ssh_;
  net::HttpClient http_;
  async::SingleFlight<EngineInfo> infos_;  ///< Has one key.
};

/// Returns the member `message` of an engine's response; for other responses, their text.
std::string message_of(std::string_view body);

}  // namespace pipeline::docker
