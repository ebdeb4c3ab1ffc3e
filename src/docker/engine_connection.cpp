#include "docker/engine_connection.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "core/bounded_json.hpp"
#include "core/log.hpp"
#include "docker/engine_errors.hpp"
#include "docker/json_text.hpp"
#include "docker/unreachable.hpp"

namespace pipeline::docker {
namespace {

/// `1.41` as a pair that compares as versions do.
using ApiVersion = std::pair<int, int>;
constexpr ApiVersion newest_known{1, 50}, oldest_known{1, 40};

ApiVersion parse_version(const std::string& text) {
  ApiVersion version{0, 0};
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.')
    std::from_chars(major.ptr + 1, end, version.second);
  return version;
}

std::string to_text(ApiVersion version) {
  return std::to_string(version.first) + "." + std::to_string(version.second);
}

bool is_podman(const nlohmann::json& version) {
  const auto components = version.find("Components");
  if (components == version.end() || !components->is_array()) return false;
  return std::any_of(components->begin(), components->end(), [](const nlohmann::json& component) {
    return component.is_object() && text_at(component, "Name").find("Podman") != std::string::npos;
  });
}

/// The engine's own preference (a header of /_ping, "1" where an administrator has turned BuildKit
/// off), unless DOCKER_BUILDKIT overrides it.
bool has_buildkit(const EngineInfo& info, const std::string& preferred) {
  if (info.podman || info.os != "linux") return false;
  if (const char* wish = std::getenv("DOCKER_BUILDKIT"); wish && *wish)
    return std::string_view(wish) != "0" && std::string_view(wish) != "false";
  return preferred != "1";
}

}  // namespace

std::string message_of(std::string_view body) {
  const auto json = core::parse_json(body);
  if (json.is_object())
    if (auto message = text_at(json, "message"); !message.empty()) return message;
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
    request.unix_socket = "ssh";
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

async::Task<net::Response> EngineConnection::exchange(net::Request prepared, EngineCall call) {
  constexpr int most_tries = 12;
  for (int tries = 1;; ++tries) {
    auto request = prepared;
    if (call.source) request.body_source = call.source();
    const auto process = std::make_shared<int>(0);  // shared with curl's callback
    if (ssh_)
      request.connect = [this, process](sockaddr& address, unsigned& length) {
        auto connection = ssh_->offer(loop_.get_executor(), address, length);
        *process = connection.number;
        return connection.socket.release();
      };
    std::optional<net::TransportError> lost;
    try {
      co_return co_await http_.send(std::move(request), call.on_body, call.cancel, call.on_headers);
    } catch (const net::TransportError& error) {
      lost = error;
    }
    if (*process == 0 || (call.cancel && call.cancel->level() != core::StopLevel::none))
      throw net::TransportError(*lost);
    const auto failure = co_await ssh_->failure_of(*process);
    if (failure.empty()) throw net::TransportError(*lost);
    if (!is_crowded(failure) || !call.repeatable || tries == most_tries)
      throw unreachable(endpoint_, failure);
    asio::steady_timer pause(loop_, std::chrono::milliseconds(50 * tries));
    co_await pause.async_wait(asio::use_awaitable);
  }
}

async::Task<net::Response> EngineConnection::ask(std::string path) {
  auto prepared = request(path);
  prepared.timeout = std::chrono::seconds(30);
  EngineCall call("ask the engine who it is", "GET", std::move(path));
  co_return co_await exchange(std::move(prepared), std::move(call));
}

async::Task<EngineInfo> EngineConnection::negotiate() {
  net::Response ping, answer;
  try {
    ping = co_await ask("/_ping");
    answer = co_await ask("/version");
  } catch (const net::TransportError& error) {
    throw unreachable(endpoint_, error.what());
  }
  const auto version = core::parse_json(answer.body);
  if (answer.status != 200 || !version.is_object() || !version.contains("ApiVersion"))
    throw unreachable(endpoint_,
                      "what answers is no Docker Engine: GET /version came back with status " +
                          std::to_string(answer.status) + ", " + message_of(answer.body));
  EngineInfo info;
  info.version = text_at(version, "Version");
  info.min_api_version = text_at(version, "MinAPIVersion");
  info.os = text_at(version, "Os");
  info.architecture = text_at(version, "Arch");
  info.podman = is_podman(version);
  const auto theirs = parse_version(text_at(version, "ApiVersion"));
  const auto used = std::min(theirs, newest_known);
  const std::string engine = std::string(info.podman ? "Podman " : "Docker Engine ") +
                             info.version + " at " + endpoint_.url;
  if (used < oldest_known)
    throw core::EnvironmentError(engine + " is too old: it speaks API " + to_text(theirs) +
                                     ", and " + to_text(oldest_known) + " is needed",
                                 {"update to Docker Engine 19.03 or newer",
                                  "or run the steps as plain processes: `--orchestrator local`"});
  if (parse_version(info.min_api_version) > used)
    throw core::EnvironmentError(
        engine + " is too new: it wants API " + info.min_api_version +
            " or newer, and this program speaks " + to_text(newest_known),
        {"update this program", "or set `min-api-version` lower in the engine's daemon.json"});
  info.api_version = to_text(used);
  info.buildkit = has_buildkit(info, ping.header("builder-version"));
  co_return info;
}

async::Task<const EngineInfo*> EngineConnection::info() {
  if (info_) co_return &*info_;
  if (const auto other = negotiation_) {
    co_await other->done.wait();
    if (other->error) std::rethrow_exception(other->error);
    co_return &*info_;
  }
  const auto own = negotiation_ = std::make_shared<Negotiation>(loop_);
  try {
    info_ = co_await negotiate();
  } catch (...) {
    own->error = std::current_exception();
  }
  negotiation_.reset();
  own->done.open();
  if (own->error) std::rethrow_exception(own->error);
  co_return &*info_;
}

async::Task<net::Response> EngineConnection::send(EngineCall call) {
  const auto* engine = co_await info();
  const auto what = call.what, registry = call.registry;
  auto prepared = request("/v" + engine->api_version + call.path);
  prepared.method = call.method;
  prepared.headers = std::move(call.headers);
  if (!call.body.is_null()) {
    try {
      prepared.body = call.body.dump();
    } catch (const nlohmann::json::type_error&) {
      throw core::EnvironmentError("cannot " + what +
                                   ": an argument, a variable or a name in it is not UTF-8, and "
                                   "the engine takes nothing else");
    }
    prepared.headers.push_back("Content-Type: application/json");
  }
  if (core::log::debug_enabled()) core::log::debug("engine: " + call.method + " " + call.path);
  net::Response response;
  try {
    response = co_await exchange(std::move(prepared), std::move(call));
  } catch (const net::TransportError& error) {
    throw net::TransportError(error.curl_code(), "cannot " + what + ": " + error.what());
  }
  if (response.status < 300 || response.status == 304) co_return response;  // 304: it is so already
  const auto message = message_of(response.body);
  throw EngineError(response.status, "cannot " + what + ": " + message,
                    advice_for(message, registry));
}

async::Task<nlohmann::json> EngineConnection::send_json(EngineCall call) {
  const auto what = call.what;
  const auto response = co_await send(std::move(call));
  if (response.body.empty()) co_return nullptr;
  auto json = core::parse_json(response.body);
  if (json.is_discarded())
    throw core::EnvironmentError(
        "cannot " + what + ": the engine's answer is no JSON: " + response.body.substr(0, 200));
  co_return json;
}

}  // namespace pipeline::docker
