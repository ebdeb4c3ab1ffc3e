#include "docker/engine_api.hpp"

#include <utility>

#include "async/deadline.hpp"
#include "core/bounded_json.hpp"
#include "core/excerpt.hpp"
#include "core/log.hpp"
#include "docker/engine_connection.hpp"
#include "docker/json_lines.hpp"
#include "docker/json_text.hpp"
#include "docker/log_frames.hpp"
#include "docker/reference.hpp"
#include "net/url.hpp"

namespace pipeline::docker {
namespace {

/// Encodes an image reference as part of a path, where `/` and `:` stay unencoded.
std::string image_path(const std::string& reference, const char* rest) {
  return "/images/" + net::url_encode(reference, "/:@") + rest;
}

/// @param what completes the message "cannot ..." with the container's name
EngineCall container_call(const std::string& what, const std::string& id, const char* method,
                          const std::string& rest) {
  return EngineCall(what + " the container " + id.substr(0, 12), method,
                    "/containers/" + net::url_encode(id) + rest);
}

std::string auth_header(const std::string& registry_auth) {
  return "X-Registry-Auth: " +
         (registry_auth.empty() ? std::string("e30=") : registry_auth);  // e30= is {}.
}

ContainerState state_of(const nlohmann::json& container) try {
  const auto state = container.value("State", nlohmann::json::object());
  ContainerState result{
      .running = state.value("Running", false),
      .started = false,
      .exit_code = core::integer_of<int>(state.value("ExitCode", nlohmann::json(0))),
      .oom_killed = state.value("OOMKilled", false),
      .error = state.value("Error", std::string())};
  const auto started_at = state.value("StartedAt", std::string());
  result.started = result.running || (!started_at.empty() && !started_at.starts_with("0001-"));
  return result;
} catch (const nlohmann::json::exception&) {
  throw core::EnvironmentError("the engine's answer about a container is not a state");
}

/// Returns the Id of the image or container that an answer describes.
/// @param what completes the message "cannot ..."
std::string id_in(const nlohmann::json& answer, const std::string& what) {
  auto id = text_at(answer, "Id");
  if (id.empty())
    throw core::EnvironmentError("cannot " + what + ": the engine's answer has no Id");
  return id;
}

bool has_ended(const ContainerState& state) { return state.started && !state.running; }

/// Returns nothing if the engine does not have the requested object (404).
template <class T>
async::Task<std::optional<T>> if_found(async::Task<T> answer) {
  try {
    co_return co_await std::move(answer);
  } catch (const EngineError& error) {
    if (error.status() != 404) throw;
  }
  co_return std::nullopt;
}

/// Factor of the time limit for calls whose duration grows with the amount of data on the disk.
constexpr unsigned slow = 10;

}  // namespace

struct EngineApi::Implementation : EngineConnection {
  using EngineConnection::EngineConnection;

  /// Sends a call whose response lasts as long as a container's program.
  async::Task<> follow(EngineCall call, EngineLogFrames& frames, core::CancelSource* cancel) {
    call.on_body = [&frames](std::string_view bytes) { frames.feed(bytes); };
    call.cancel = cancel;
    call.stream = call.opens_at_once = true;
    co_await send(std::move(call));
    frames.finish();
  }
  /// Sends a call with a tar, which cannot be repeated, and reads the JSON lines of the response.
  async::Task<> send_tar(EngineCall call, net::BodySource tar,
                         std::function<void(const nlohmann::json&)> on_message,
                         core::CancelSource* cancel) {
    JsonLines lines(std::move(on_message));
    call.headers.push_back("Content-Type: application/x-tar");
    call.source = [tar = std::move(tar)]() mutable { return std::exchange(tar, {}); };
    call.repeatable = false;
    call.on_body = [&lines](std::string_view bytes) { lines.feed(bytes); };
    call.cancel = cancel;
    call.stream = true;
    co_await send(std::move(call));
    lines.finish();
  }
};

EngineApi::EngineApi(asio::io_context& loop, Endpoint endpoint, EngineLimits limits,
                     core::CancelSource* run_cancel)
    : self_(std::make_unique<Implementation>(loop, std::move(endpoint), limits, run_cancel)) {}
EngineApi::~EngineApi() = default;
const Endpoint& EngineApi::endpoint() const { return self_->endpoint(); }
const EngineLimits& EngineApi::limits() const { return self_->limits(); }

async::Task<const EngineInfo*> EngineApi::info() { return self_->info(); }

std::unique_ptr<net::Connection> EngineApi::open_connection() { return self_->open(); }

async::Task<nlohmann::json> EngineApi::system_info() {
  EngineCall call("ask the engine about itself", "GET", "/info");
  call.cancel = self_->run_cancel();
  return self_->send_json(std::move(call));
}

async::Task<nlohmann::json> EngineApi::disk_usage() {
  EngineCall call("ask the engine about its disk", "GET", "/system/df");
  call.slowness = slow;
  call.cancel = self_->run_cancel();
  co_return co_await self_->send_json(std::move(call));
}

async::Task<nlohmann::json> EngineApi::call(std::string method, std::string path,
                                            nlohmann::json body) {
  EngineCall call(method + " " + path, method, path);
  call.body = std::move(body);
  return self_->send_json(std::move(call));
}

namespace {

/// Returns `linux/arm64/v8` as the API's JSON.
std::string platform_json(const std::string& platform) {
  const auto first = platform.find('/'), second = platform.find('/', first + 1);
  nlohmann::json parts;
  parts["os"] = platform.substr(0, first);
  if (first != platform.npos)
    parts["architecture"] = platform.substr(first + 1, second - first - 1);
  if (first != platform.npos && second != platform.npos)
    parts["variant"] = platform.substr(second + 1);
  return parts.dump();
}

}  // namespace

async::Task<std::optional<nlohmann::json>> EngineApi::inspect_image(std::string reference,
                                                                    std::string platform) {
  const auto what = "look up the image " + reference;
  EngineCall call(what, "GET", image_path(reference, "/json"));
  call.cancel = self_->run_cancel();
  auto image = co_await if_found(self_->send_json(std::move(call)));
  if (!image) co_return image;
  const auto id = id_in(*image, what);
  const auto* engine = co_await info();
  if (platform.empty() || !speaks_api(*engine, 49)) co_return image;
  EngineCall of_platform(
      what + " for " + platform, "GET",
      image_path(reference, "/json?platform=") + net::url_encode(platform_json(platform)));
  of_platform.cancel = self_->run_cancel();
  auto found = co_await if_found(self_->send_json(std::move(of_platform)));
  if (!found) co_return found;
  id_in(*found, what + " for " + platform);
  (*found)["Id"] = id;
  co_return found;
}

namespace {

/// Completes a call that moves an image between the engine and a registry.
void make_transfer(EngineCall& call, const std::string& reference, const std::string& registry_auth,
                   TransferProgress& progress, core::CancelSource& cancel) {
  call.headers.push_back(auth_header(registry_auth));
  call.registry = registry_of(reference);
  call.on_body = [&progress](std::string_view bytes) { progress.feed(bytes); };
  call.cancel = &cancel;
  call.stream = true;
}

}  // namespace

async::Task<> EngineApi::pull_image(std::string reference, std::string platform,
                                    std::string registry_auth,
                                    std::function<void(std::string_view)> on_line,
                                    core::CancelSource& cancel) {
  const auto [name, tag] = split_reference(reference);
  TransferProgress progress("pull the image " + reference, registry_of(reference),
                            std::move(on_line));
  EngineCall call(
      "pull the image " + reference, "POST",
      "/images/create?fromImage=" + net::url_encode(name) + "&tag=" + net::url_encode(tag));
  if (!platform.empty()) call.path += "&platform=" + net::url_encode(platform);
  make_transfer(call, reference, registry_auth, progress, cancel);
  co_await self_->send(std::move(call));
  progress.finish();
}

async::Task<Pushed> EngineApi::push_image(std::string reference, std::string registry_auth,
                                          std::function<void(std::string_view)> on_line,
                                          core::CancelSource& cancel) {
  const auto [name, tag] = split_reference(reference);
  TransferProgress progress("push the image " + reference, registry_of(reference),
                            std::move(on_line));
  EngineCall call("push the image " + reference, "POST",
                  image_path(name, "/push?tag=") + net::url_encode(tag));
  make_transfer(call, reference, registry_auth, progress, cancel);
  co_await self_->send(std::move(call));
  progress.finish();
  co_return progress.pushed();
}

async::Task<std::optional<std::string>> EngineApi::registry_digest(std::string reference,
                                                                   std::string registry_auth,
                                                                   core::CancelSource& cancel) {
  EngineCall call("ask the registry for the image " + reference, "GET",
                  "/distribution/" + net::url_encode(reference, "/:@") + "/json");
  call.headers.push_back(auth_header(registry_auth));
  call.registry = registry_of(reference);
  call.cancel = &cancel;
  const auto answer = co_await if_found(self_->send_json(std::move(call)));
  const auto* descriptor = answer ? core::member(*answer, "Descriptor") : nullptr;
  const auto* digest = descriptor ? core::member(*descriptor, "digest") : nullptr;
  if (!digest || !digest->is_string()) co_return std::nullopt;
  co_return digest->get<std::string>();
}

async::Task<> EngineApi::tag_image(std::string reference, std::string repository, std::string tag) {
  EngineCall call("tag the image " + reference + " as " + repository + ":" + tag, "POST",
                  image_path(reference, "/tag?repo=") + net::url_encode(repository) +
                      "&tag=" + net::url_encode(tag));
  co_await self_->send(std::move(call));
}

async::Task<> EngineApi::remove_image(std::string reference) {
  EngineCall call("remove the image " + reference, "DELETE", image_path(reference, ""));
  call.slowness = slow;
  co_await self_->send(std::move(call));
}

async::Task<> EngineApi::build(std::string query, std::string registry_config,
                               net::BodySource context,
                               std::function<void(const nlohmann::json&)> on_message,
                               core::CancelSource& cancel) {
  EngineCall call("build an image", "POST", "/build?" + query);
  if (!registry_config.empty()) call.headers.push_back("X-Registry-Config: " + registry_config);
  return self_->send_tar(std::move(call), std::move(context), std::move(on_message), &cancel);
}

async::Task<> EngineApi::load_image(std::string what, net::BodySource tar,
                                    std::function<void(const nlohmann::json&)> on_message,
                                    core::CancelSource& cancel) {
  EngineCall call("load the image " + what, "POST", "/images/load?quiet=1");
  return self_->send_tar(std::move(call), std::move(tar), std::move(on_message), &cancel);
}

async::Task<std::string> EngineApi::create_container(std::string name, nlohmann::json body,
                                                     std::string platform,
                                                     core::CancelSource* retry_cancel) {
  EngineCall call("create the container " + name, "POST",
                  "/containers/create?name=" + net::url_encode(name));
  call.body = std::move(body);
  if (!platform.empty()) call.path += "&platform=" + net::url_encode(platform);
  call.retry_cancel = retry_cancel;
  call.retried = !name.empty();
  call.slowness = 3;  // A storage driver may copy the image.
  const auto labels = call.body.value("Labels", nlohmann::json::object());
  call.earlier_success = [this, &name, &labels]() -> async::Task<std::optional<net::Response>> {
    return find_created(name, labels);
  };
  const auto answer = co_await self_->send_json(std::move(call));
  if (answer.is_object() && answer.contains("Warnings") && answer["Warnings"].is_array())
    for (const auto& warning : answer["Warnings"])
      core::log::info("engine: " + name + ": " + warning.dump());
  co_return id_in(answer, "create the container " + name);
}

async::Task<std::optional<net::Response>> EngineApi::find_created(std::string name,
                                                                  nlohmann::json labels) {
  const auto what = "look up the container " + name;
  EngineCall call(what, "GET", "/containers/" + net::url_encode(name) + "/json");
  const auto container = co_await if_found(self_->send_json(std::move(call)));
  if (!container) co_return std::nullopt;
  const auto id = id_in(*container, what);
  const auto found_labels =
      container->value(nlohmann::json::json_pointer("/Config/Labels"), nlohmann::json::object());
  for (const auto& [label, value] : labels.items())
    if (!found_labels.is_object() || found_labels.value(label, nlohmann::json()) != value)
      co_return std::nullopt;
  if (state_of(*container).started) co_return std::nullopt;
  net::Response created;
  created.status = 201;
  created.body = nlohmann::json{{"Id", id}}.dump();
  co_return created;
}

async::Task<> EngineApi::start_container(std::string id, core::CancelSource* retry_cancel) {
  auto call = container_call("start", id, "POST", "/start");
  call.retry_cancel = retry_cancel;
  call.earlier_success = [this, &id]() -> async::Task<std::optional<net::Response>> {
    const auto state = co_await inspect_container(id);
    if (!state.started) co_return std::nullopt;
    co_return net::Response{};
  };
  co_await self_->send(std::move(call));
}

async::Task<int> EngineApi::wait_container(std::string id, std::string condition,
                                           std::function<void()> on_listening,
                                           core::CancelSource* cancel) {
  auto call =
      container_call("wait for", id, "POST", "/wait?condition=" + net::url_encode(condition));
  call.cancel = cancel;
  if (on_listening)
    call.on_headers = [&on_listening](const net::Response& response) {
      if (response.status < 300) on_listening();
    };
  call.stream = call.opens_at_once = true;
  call.retried = false;
  call.probe = "/containers/" + net::url_encode(id) + "/json";
  call.is_over = [](const net::Response& response) {
    const auto container = core::parse_json(response.body);
    return response.status == 404 ||
           (response.status == 200 && container.is_object() && has_ended(state_of(container)));
  };
  const auto what = "cannot " + call.what + ": ";
  const auto answer = co_await self_->send_json(std::move(call));
  const auto* code = core::member(answer, "StatusCode");
  if (!code || !code->is_number_integer())
    throw core::EnvironmentError(what + "the engine's answer has no StatusCode");
  const auto* error = core::member(answer, "Error");
  if (const auto message = error ? text_at(*error, "Message") : std::string(); !message.empty())
    throw EngineError(500, what + core::excerpt(message));
  co_return code->get<int>();
}

async::Task<ContainerState> EngineApi::inspect_container(std::string id,
                                                         core::CancelSource* retry_cancel,
                                                         core::CancelSource* cancel) {
  auto call = container_call("look up", id, "GET", "/json");
  call.retry_cancel = retry_cancel;
  call.cancel = cancel;
  co_return state_of(co_await self_->send_json(std::move(call)));
}

async::Task<nlohmann::json> EngineApi::container_stats(std::string id, core::CancelSource& cancel) {
  // An engine that does not know `one-shot` answers after two seconds.
  auto call =
      container_call("read the resource usage of", id, "GET", "/stats?stream=false&one-shot=true");
  call.cancel = &cancel;
  call.retried = false;
  co_return co_await self_->send_json(std::move(call));
}

async::Task<bool> EngineApi::saw_own_end(std::string id, core::CancelSource* retry_cancel) {
  const auto* engine = co_await info();
  if (engine->podman) co_return true;
  // The engine emits the event when it has stored the container's output: perhaps long after the
  // container's end, but at once after it shows the container as ended.
  constexpr std::chrono::seconds latest_event(10);
  nlohmann::json filters;
  filters["type"] = {"container"};
  filters["container"] = {id};
  EngineCall call("read the events of the container " + id.substr(0, 12), "GET",
                  "/events?since=1&filters=" + net::url_encode(filters.dump()));
  core::CancelSource never;
  async::Deadline enough(co_await asio::this_coro::executor, retry_cancel ? *retry_cancel : never,
                         Duration(latest_event), core::StopLevel::immediate);
  bool ended = false, stopped = false;
  JsonLines events([&](const nlohmann::json& event) {
    const auto action = text_at(event, "Action");
    stopped |= action == "kill";
    ended |= action == "die";
    if (ended) enough.source().stop(core::StopLevel::immediate);
  });
  call.on_body = [&events](std::string_view bytes) { events.feed(bytes); };
  call.cancel = &enough.source();
  call.retry_cancel = retry_cancel;
  call.more_time = latest_event;
  try {
    co_await self_->send(std::move(call));
  } catch (const net::TransportError&) {
    if (enough.source().level() == core::StopLevel::none) throw;
  }
  co_return ended && !stopped;
}

async::Task<bool> EngineApi::has_file(std::string id, std::string path) {
  auto call = container_call("look for " + path + " in", id, "HEAD",
                             "/archive?path=" + net::url_encode(path));
  const auto answer = co_await if_found(self_->send(std::move(call)));
  co_return answer.has_value();
}

async::Task<> EngineApi::attach_container(
    std::string id, std::function<void(bool is_stderr, std::string_view)> on_bytes,
    std::function<void()> on_listening, core::CancelSource* cancel) {
  EngineLogFrames frames(std::move(on_bytes));
  auto call = container_call("attach to", id, "POST", "/attach?stream=1&stdout=1&stderr=1");
  if (on_listening)
    call.on_headers = [&on_listening](const net::Response& response) {
      if (response.status < 300) on_listening();
    };
  co_await self_->follow(std::move(call), frames, cancel);
}

async::Task<> EngineApi::follow_logs(std::string id,
                                     std::function<void(bool is_stderr, std::string_view)> on_bytes,
                                     core::CancelSource* cancel) {
  EngineLogFrames frames(std::move(on_bytes));
  auto call = container_call("read the logs of", id, "GET", "/logs?follow=1&stdout=1&stderr=1");
  co_await self_->follow(std::move(call), frames, cancel);
}

async::Task<int> EngineApi::run_in_container(
    std::string id, std::vector<std::string> command,
    std::function<void(bool is_stderr, std::string_view)> on_bytes, core::CancelSource* cancel) {
  auto make = container_call("run " + command.front() + " in", id, "POST", "/exec");
  make.body = {{"AttachStdout", true}, {"AttachStderr", true}, {"Cmd", std::move(command)}};
  make.cancel = cancel;
  auto what = make.what;
  const auto made = co_await self_->send_json(std::move(make));
  const auto exec = id_in(made, what);
  EngineLogFrames frames(std::move(on_bytes));
  EngineCall call(what, "POST", "/exec/" + net::url_encode(exec) + "/start");
  call.body = {{"Detach", false}, {"Tty", false}};
  co_await self_->follow(std::move(call), frames, cancel);
  EngineCall look(std::move(what), "GET", "/exec/" + net::url_encode(exec) + "/json");
  look.cancel = cancel;
  const auto ended = co_await self_->send_json(std::move(look));
  const auto* code = core::member(ended, "ExitCode");
  co_return code && code->is_number_integer() ? code->get<int>() : -1;
}

async::Task<> EngineApi::put_archive(std::string id, std::string folder,
                                     std::function<net::BodySource()> tar,
                                     core::CancelSource& cancel) {
  auto call =
      container_call("copy files into", id, "PUT", "/archive?path=" + net::url_encode(folder));
  call.headers.push_back("Content-Type: application/x-tar");
  call.source = std::move(tar);
  call.cancel = &cancel;
  call.stream = true;
  co_await self_->send(std::move(call));
}

async::Task<> EngineApi::get_archive(std::string id, std::string path,
                                     std::function<void(std::string_view)> on_bytes,
                                     core::CancelSource& cancel) {
  auto call = container_call("copy " + path + " out of", id, "GET",
                             "/archive?path=" + net::url_encode(path));
  call.on_body = std::move(on_bytes);
  call.cancel = &cancel;
  call.stream = true;
  co_await self_->send(std::move(call));
}

async::Task<> EngineApi::stop_container(std::string id, int grace_seconds) {
  auto call = container_call("stop", id, "POST", "/stop?t=" + std::to_string(grace_seconds));
  call.more_time = std::chrono::seconds(grace_seconds);
  co_await self_->send(std::move(call));
}

async::Task<> EngineApi::kill_container(std::string id, std::string signal) {
  auto call = container_call("kill", id, "POST", "/kill?signal=" + net::url_encode(signal));
  co_await self_->send(std::move(call));
}

async::Task<> EngineApi::remove_container(std::string id) {
  try {
    auto call = container_call("remove", id, "DELETE", "?force=1&v=1");
    call.slowness = slow;
    co_await self_->send(std::move(call));
  } catch (const EngineError& error) {
    // The container is gone, or another process is removing it.
    if (error.status() != 404 && error.status() != 409) throw;
  }
}

async::Task<std::vector<nlohmann::json>> EngineApi::list_containers(
    std::vector<std::string> labels) {
  nlohmann::json filters;
  filters["label"] = std::move(labels);
  EngineCall call("list the containers", "GET",
                  "/containers/json?all=1&filters=" + net::url_encode(filters.dump()));
  const auto answer = co_await self_->send_json(std::move(call));
  std::vector<nlohmann::json> containers;
  for (const auto& container : answer) {
    id_in(container, "list the containers");
    containers.push_back(container);
  }
  co_return containers;
}

}  // namespace pipeline::docker
