/// @file
/// One engine to talk to: its version negotiated once, its errors put into words.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/gate.hpp"
#include "docker/engine_api.hpp"
#include "docker/ssh_connection.hpp"

namespace pipeline::docker {

/// One request; `path` is below the API version, its query encoded already.
struct EngineCall {
  // No aggregate: g++ 12 destroys a brace-initialised temporary twice in a co_await expression.
  EngineCall(std::string what_is_tried, std::string http_method, std::string path_and_query)
      : what(std::move(what_is_tried)),
        method(std::move(http_method)),
        path(std::move(path_and_query)) {}
  std::string what;  ///< For messages, after "cannot ": `start the container x`.
  std::string method;
  std::string path;
  nlohmann::json body = nullptr;
  std::vector<std::string> headers;
  std::string registry = "REGISTRY";        ///< For advice: whom the engine has to talk to.
  std::function<net::BodySource()> source;  ///< Makes the body.
  bool repeatable = true;                   ///< `source` can be asked again.
  std::function<void(std::string_view)> on_body;
  std::function<void(const net::Response&)> on_headers;
  core::CancelSource* cancel = nullptr;   ///< Aborts the exchange.
  core::CancelSource* retries = nullptr;  ///< Ends the retries ...
  bool retried = true;                    ///< ... which a stream with `on_body` never has.
  unsigned slowness = 1;                  ///< Multiplies the time limit ...
  std::chrono::seconds more_time{0};      ///< ... and this is added.
  /// Asked before a retry: the answer, if the try whose answer was lost has succeeded.
  std::function<async::Task<std::optional<net::Response>>()> earlier_success;
  bool stream = false;  ///< Without time limit and retries; the engine is checked while it lasts.
  bool opens_at_once = false;    ///< The stream's headers come within the time limit.
  std::string probe = "/_ping";  ///< What the check of a stream asks ...
  std::function<bool(const net::Response&)>
      is_over;  ///< ... and whether its answer says that the stream should have ended.
};

class EngineConnection {
 public:
  EngineConnection(asio::io_context& loop, Endpoint endpoint, EngineLimits limits = {})
      : loop_(loop), endpoint_(std::move(endpoint)), limits_(limits), http_(loop) {}
  const Endpoint& endpoint() const { return endpoint_; }
  const EngineLimits& limits() const { return limits_; }
  asio::io_context& loop() { return loop_; }

  async::Task<const EngineInfo*> info();
  /// The answer, whose status is below 300, or 304. Throws EngineError for any other,
  /// EnvironmentError if the engine cannot be reached; before that it retries what is no stream,
  /// within the limits.
  async::Task<net::Response> send(EngineCall call);
  /// The same, as JSON; null for an empty answer.
  async::Task<nlohmann::json> send_json(EngineCall call);

 private:
  struct Negotiation {
    explicit Negotiation(asio::io_context& loop) : done(loop.get_executor()) {}
    async::Gate done;
    std::exception_ptr error;
  };
  net::Request request(const std::string& path);
  /// One exchange with whatever the endpoint is. An ssh that has not come through is explained by
  /// what it said, or tried again.
  async::Task<net::Response> exchange(net::Request prepared, const EngineCall& call);
  /// The same for a stream, which ends with TransportError when the engine hangs.
  async::Task<net::Response> exchange_stream(net::Request prepared, const EngineCall& call);
  struct StreamWatch;
  async::Task<> watch_stream(StreamWatch& watch);
  /// A question that needs no version.
  async::Task<net::Response> ask(std::string path);
  async::Task<EngineInfo> negotiate();

  asio::io_context& loop_;
  Endpoint endpoint_;
  EngineLimits limits_;
  std::unique_ptr<SshConnections>
      ssh_;  ///< Made when needed; outlives the client, which closes the connections.
  net::HttpClient http_;
  std::optional<EngineInfo> info_;
  std::shared_ptr<Negotiation> negotiation_;  ///< Shared with those who wait for it.
};

/// `{"message": ...}` of an engine's answer, or the text itself.
std::string message_of(std::string_view body);

}  // namespace pipeline::docker
