#include "docker/engine_connection.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "async/finally.hpp"
#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "core/bounded_json.hpp"
#include "core/excerpt.hpp"
#include "core/log.hpp"
#include "core/user_environment.hpp"
#include "docker/engine_api.hpp"
#include "docker/engine_errors.hpp"
#include "docker/json_text.hpp"
#include "docker/unreachable.hpp"
#include "net/curl.hpp"
#include "net/trust.hpp"

namespace pipeline::docker {
namespace {

/// The first two numbers of a version such as `1.41` or `27.5.1`, for comparison.
using MajorMinor = std::pair<int, int>;
constexpr MajorMinor newest_known_api{1, 50}, oldest_known_api{1, 40};

/// Returns 0.0 for a malformed text.
MajorMinor parse_version(const std::string& text) {
  MajorMinor version{0, 0};
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.')
    std::from_chars(major.ptr + 1, end, version.second);
  return version;
}

std::string to_text(MajorMinor version) {
  return std::to_string(version.first) + "." + std::to_string(version.second);
}

bool is_podman(const nlohmann::json& version) {
  const auto components = version.find("Components");
  if (components == version.end() || !components->is_array()) return false;
  return std::any_of(components->begin(), components->end(), [](const nlohmann::json& component) {
    return component.is_object() && text_at(component, "Name").find("Podman") != std::string::npos;
  });
}

/// Returns the engine's own preference (a header of /_ping, "1" if an administrator has disabled
/// BuildKit), unless DOCKER_BUILDKIT overrides it.
bool has_buildkit(const EngineInfo& info, const std::string& preferred) {
  if (info.podman || info.os != "linux") return false;
  if (const char* wish = std::getenv("DOCKER_BUILDKIT"); wish && *wish)
    return std::string_view(wish) != "0" && std::string_view(wish) != "false";
  return preferred != "1";
}

/// Decides whether a failed call is tried again. A 500 and a timeout are tried less often than the
/// policy allows: the cause of a 500 is often permanent, and each timeout costs the whole limit.
class Retries {
 public:
  explicit Retries(const async::RetryPolicy& policy) : backoff_(policy) {}
  /// Returns the pause before the next try; nothing if there are no more tries.
  std::optional<std::chrono::milliseconds> after(long status, std::string_view message) {
    constexpr unsigned max_server_errors = 4;
    if (!is_retryable(status, message) || backoff_.exhausted()) return std::nullopt;
    if (status == 500 && ++server_errors_ == max_server_errors) return std::nullopt;
    return backoff_.next();
  }
  std::optional<std::chrono::milliseconds> after(const net::TransportError& error) {
    constexpr unsigned max_timeouts = 2;
    if (error.curl_code() == CURLE_ABORTED_BY_CALLBACK || net::is_about_trust(error) ||
        backoff_.exhausted())
      return std::nullopt;
    if (error.curl_code() == CURLE_OPERATION_TIMEDOUT && ++timeouts_ == max_timeouts)
      return std::nullopt;
    return backoff_.next();
  }

 private:
  async::Backoff backoff_;
  unsigned server_errors_ = 0, timeouts_ = 0;
};

bool is_stopped(const core::CancelSource* source) {
  return source && source->level() != core::StopLevel::none;
}

}  // namespace

EngineLimits limits_from_environment() {
  EngineLimits limits;
  const auto time = core::duration_of_variable("PIPE_ENGINE_TIMEOUT", Duration(1));
  if (!time) return limits;
  limits.answer = std::chrono::milliseconds(time->count());
  limits.check = limits.answer / 4;
  return limits;
}

bool is_retryable(long status, std::string_view message) {
  if (status == 429 || (status > 500 && status < 600 && status != 501)) return true;
  return status == 500 && message.find("already in use") == message.npos &&
         advice_for(message, "REGISTRY").empty();
}

std::string message_of(std::string_view body) {
  const auto json = core::parse_json(body);
  if (json.is_object())
    if (const auto message = text_at(json, "message"); !message.empty())
      return core::excerpt(message);
  std::string text(body.substr(0, 500));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text.empty() ? "no reason given" : text;
}

net::Request EngineConnection::request(const std::string& path) {
  net::Request request;
  const auto& url = endpoint_.url;
  if (url.starts_with("unix://")) {
    request.unix_socket = url.substr(7);
    request.url = "http://docker" + path;
  } else if (url.starts_with("tcp://")) {
    request.url = (endpoint_.use_tls ? "https://" : "http://") + url.substr(6) + path;
  } else if (url.starts_with("http://") || url.starts_with("https://")) {
    request.url = url + path;
  } else if (url.starts_with("ssh://")) {
    if (!ssh_) ssh_ = std::make_unique<SshConnections>(parse_ssh_url(url));
    request.unix_socket = ssh_->path();
    request.url = "http://docker" + path;
  } else {
    throw core::EnvironmentError(
        "cannot reach an engine at " + url + " (" + endpoint_.origin +
            "): this kind of endpoint is not supported",
        {"set DOCKER_HOST to unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST"});
  }
  request.tls = endpoint_.tls;
  return request;
}

std::unique_ptr<net::Connection> EngineConnection::open() {
  auto prepared = request("/");
  if (ssh_)
    prepared.make_socket = [this] { return ssh_->offer(loop_.get_executor()).socket.release(); };
  try {
    return std::make_unique<net::Connection>(loop_, std::move(prepared));
  } catch (const net::TransportError& error) {
    throw unreachable(endpoint_, error.what());
  }
}

async::Task<net::Response> EngineConnection::exchange(net::Request prepared,
                                                      const EngineCall& call) {
  constexpr int max_tries = 12;  // With the pauses below, some three seconds.
  for (int tries = 1;; ++tries) {
    auto request = prepared;
    if (call.source) request.body_source = call.source();
    const auto process = std::make_shared<int>(0);  // Its number, shared with curl's callback.
    if (ssh_)
      request.make_socket = [this, process] {
        auto connection = ssh_->offer(loop_.get_executor());
        *process = connection.number;
        return connection.socket.release();
      };
    std::optional<net::TransportError> lost;
    try {
      co_return co_await http_.send(std::move(request), call.on_body, call.cancel, call.on_headers);
    } catch (const net::TransportError& error) {
      lost = error;
    }
    if (*process == 0 || is_stopped(call.cancel)) throw net::TransportError(*lost);
    const auto failure = co_await ssh_->failure_of(*process);
    if (failure.empty()) throw net::TransportError(*lost);
    if (!is_crowded(failure) || !call.repeatable || tries == max_tries) {
      const auto error = unreachable(endpoint_, failure);
      // An engine that has responded before may come back: this error is retried.
      if (known_info()) throw net::TransportError(lost->curl_code(), error.what());
      throw UnreachableEngine(error);
    }
    co_await async::sleep(std::chrono::milliseconds(50 * tries));
  }
}

/// The state of a stream, shared by the exchange and the task that checks the engine.
struct EngineConnection::StreamWatch {
  const EngineCall& call;
  core::CancelSource stop;  ///< Aborts the stream.
  core::CancelSource over;  ///< The stream has ended.
  bool opened = false;
  std::string trouble;  ///< Why the stream was aborted; empty: it was not.
};

async::Task<net::Response> EngineConnection::exchange_stream(net::Request prepared,
                                                             const EngineCall& call) {
  StreamWatch watch{call, {}, {}, false, {}};
  std::optional<core::CancelSource::Listener> outer;
  if (call.cancel)
    outer.emplace(*call.cancel, [&watch](core::StopLevel level) { watch.stop.stop(level); });
  EngineCall watched = call;
  watched.cancel = &watch.stop;
  watched.on_headers = [&watch](const net::Response& response) {
    watch.opened = true;
    if (watch.call.on_headers) watch.call.on_headers(response);
  };
  async::JoinableTask companion(loop_.get_executor(), watch_stream(watch));
  try {
    co_return co_await async::finally(exchange(std::move(prepared), watched), [&] {
      watch.over.stop(core::StopLevel::immediate);
      return companion.join();
    });
  } catch (...) {
    if (watch.trouble.empty()) throw;
  }
  throw net::TransportError(CURLE_OPERATION_TIMEDOUT, watch.trouble);
}

async::Task<> EngineConnection::watch_stream(StreamWatch& watch) {
  const auto began = std::chrono::steady_clock::now();
  const auto path = watch.call.probe == "/_ping"
                        ? watch.call.probe
                        : "/v" + known_info()->api_version + watch.call.probe;
  EngineCall question("check that the engine answers", "GET", path);
  question.cancel = &watch.over;
  for (int ends_seen = 0;;) {
    co_await async::sleep(limits_.check, &watch.over);
    if (is_stopped(&watch.over)) co_return;
    if (watch.call.opens_at_once && !watch.opened &&
        std::chrono::steady_clock::now() - began >= limits_.answer)
      watch.trouble = "the engine does not respond: no response has begun within " +
                      core::format_duration(limits_.answer);
    try {
      auto probe = request(path);
      probe.timeout = limits_.answer;
      const auto answer = co_await exchange(std::move(probe), question);
      // At the first look, the stream's own report of the end may still be on its way.
      if (watch.call.is_over && watch.call.is_over(answer) && ++ends_seen == 2)
        watch.trouble = "the engine does not report the container's end";
    } catch (const net::TransportError& error) {
      if (error.curl_code() == CURLE_OPERATION_TIMEDOUT)
        watch.trouble = std::string("the engine does not respond: ") + error.what();
    }
    if (is_stopped(&watch.over)) co_return;
    if (watch.trouble.empty()) continue;
    watch.stop.stop(core::StopLevel::immediate);
    co_return;
  }
}

/// Over ssh, a request without a response in a third of the time limit is repeated over a new
/// connection: a login or the program behind it may hang while the engine responds to others.
/// Throws the error of unreachable() if no answer comes.
async::Task<net::Response> EngineConnection::ask(std::string path) {
  const auto limit = std::min<std::chrono::milliseconds>(limits_.answer, std::chrono::seconds(30));
  EngineCall call("ask the engine who it is", "GET", std::move(path));
  call.cancel = run_cancel_;
  auto prepared = request(call.path);
  for (int tries = ssh_ ? 2 : 1;; --tries) {
    prepared.timeout = tries > 1 ? limit / 3 : limit;
    try {
      co_return co_await exchange(prepared, call);
    } catch (const net::TransportError& error) {
      const bool hangs = error.curl_code() == CURLE_OPERATION_TIMEDOUT && !is_stopped(run_cancel_);
      if (tries == 1 || !hangs) throw unreachable(endpoint_, error.what());
      core::log::info(std::string("engine: ") + error.what() + "; asked once more");
    }
  }
}

async::Task<EngineInfo> EngineConnection::negotiate() {
  const auto ping = co_await ask("/_ping"), answer = co_await ask("/version");
  const auto version = core::parse_json(answer.body);
  if (answer.status != 200 || !version.is_object() || !version.contains("ApiVersion"))
    throw unreachable(endpoint_, "this is not a Docker Engine: GET /version returned status " +
                                     std::to_string(answer.status) + ", " +
                                     message_of(answer.body));
  EngineInfo info;
  info.version = text_at(version, "Version");
  info.min_api_version = text_at(version, "MinAPIVersion");
  info.os = text_at(version, "Os");
  info.architecture = text_at(version, "Arch");
  info.podman = is_podman(version);
  const auto newest_of_engine = parse_version(text_at(version, "ApiVersion"));
  const auto used = std::min(newest_of_engine, newest_known_api);
  const std::string engine = std::string(info.podman ? "Podman " : "Docker Engine ") +
                             info.version + " at " + endpoint_.url;
  if (used < oldest_known_api)
    throw core::EnvironmentError(engine + " is too old: it speaks API " +
                                     to_text(newest_of_engine) + ", and " +
                                     to_text(oldest_known_api) + " is needed",
                                 {"update to Docker Engine 19.03 or newer",
                                  "or run the steps as plain processes: `--orchestrator local`"});
  if (parse_version(info.min_api_version) > used)
    throw core::EnvironmentError(
        engine + " is too new: it wants API " + info.min_api_version +
            " or newer, and this program speaks " + to_text(newest_known_api),
        {"update this program", "or set `min-api-version` lower in the engine's daemon.json"});
  info.api_version = to_text(used);
  info.buildkit = has_buildkit(info, ping.header("builder-version"));
  // Before 27.5, BuildKit on containerd's store cannot read a context that is sent with the request
  // ("no such host" of build-context). No engine before 23 has this store.
  constexpr MajorMinor first_with_store{23, 0}, first_with_contexts{27, 5};
  if (const auto engine_version = parse_version(info.version);
      info.buildkit && first_with_store <= engine_version && engine_version < first_with_contexts)
    info.buildkit = !has_containerd_store(core::parse_json((co_await ask("/info")).body));
  co_return info;
}

async::Task<const EngineInfo*> EngineConnection::info() {
  if (!known_info())
    co_await infos_.get(
        the_engine, [&] { return negotiate(); }, nullptr);
  co_return known_info();
}

async::Task<net::Response> EngineConnection::send(EngineCall call) {
  const auto* engine = co_await info();
  auto prepared = request("/v" + engine->api_version + call.path);
  prepared.method = call.method;
  prepared.headers = call.headers;
  if (!call.stream) prepared.timeout = limits_.answer * call.slowness + call.more_time;
  if (!call.body.is_null()) {
    try {
      prepared.body = call.body.dump();
    } catch (const nlohmann::json::type_error&) {
      throw core::EnvironmentError("cannot " + call.what +
                                   ": an argument, a variable or a name in it is not UTF-8, and "
                                   "the engine requires UTF-8");
    }
    prepared.headers.push_back("Content-Type: application/json");
  }
  if (core::log::debug_enabled()) core::log::debug("engine: " + call.method + " " + call.path);
  Retries retries(limits_.retries);
  for (;;) {
    std::optional<std::chrono::milliseconds> pause;
    std::exception_ptr failure;
    std::string error_text;
    try {
      net::Response response;
      if (call.stream)
        response = co_await exchange_stream(prepared, call);
      else
        response = co_await exchange(prepared, call);
      // The status 304 means that the object already has the requested state.
      if (response.status < 300 || response.status == 304) co_return response;
      const auto message = message_of(response.body);
      error_text = "cannot " + call.what + ": " + message;
      failure = std::make_exception_ptr(
          EngineError(response.status, error_text, advice_for(message, call.registry)));
      pause = retries.after(response.status, message);
    } catch (const net::TransportError& error) {
      error_text = "cannot " + call.what + ": " + error.what();
      failure = std::make_exception_ptr(net::TransportError(error.curl_code(), error_text));
      pause = retries.after(error);
    }
    const bool may_retry = call.retried && !(call.stream && call.on_body) &&
                           !is_stopped(call.cancel) && !is_stopped(call.retry_cancel);
    if (!may_retry || !pause) std::rethrow_exception(failure);
    core::log::info("engine: " + error_text + "; retried in " + std::to_string(pause->count()) +
                    " ms");
    co_await async::sleep(*pause, call.cancel ? call.cancel : call.retry_cancel);
    if (is_stopped(call.cancel) || is_stopped(call.retry_cancel)) std::rethrow_exception(failure);
    if (!call.earlier_success) continue;
    std::optional<net::Response> before;
    try {
      before = co_await call.earlier_success();
    } catch (const EngineError& error) {
      // The look-up was refused. The result of the call is unknown, as when the connection is lost.
      if (!is_retryable(error.status(), error.what())) throw;
      throw net::TransportError(CURLE_HTTP_RETURNED_ERROR, error_text + "; " + error.what());
    }
    if (before) co_return std::move(*before);
  }
}

async::Task<nlohmann::json> EngineConnection::send_json(EngineCall call) {
  const auto what = call.what;
  const auto response = co_await send(std::move(call));
  if (response.body.empty()) co_return nullptr;
  auto json = core::parse_json(response.body);
  if (json.is_discarded())
    throw core::EnvironmentError(
        "cannot " + what + ": the engine's answer is not JSON: " + response.body.substr(0, 200));
  co_return json;
}

}  // namespace pipeline::docker
