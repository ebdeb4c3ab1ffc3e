#include "orchestrators/docker/service_network.hpp"

#include <exception>
#include <list>
#include <optional>

#include <nlohmann/json.hpp>

#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "docker/json_text.hpp"
#include "net/url.hpp"
#include "orchestrators/docker/service_spec.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineApi;
using docker::EngineError;
using nlohmann::json;

/// How long to wait until the last container of a network is removed.
constexpr std::chrono::seconds leave_timeout{60};
constexpr std::chrono::milliseconds leave_pause{100};

async::Task<json> networks_with(EngineApi& engine, std::vector<std::string> labels) {
  json filters;
  filters["label"] = std::move(labels);
  auto networks =
      co_await engine.call("GET", "/networks?filters=" + net::url_encode(filters.dump()));
  co_return networks.is_array() ? std::move(networks) : json::array();
}

/// Removes a network once no container is in it any more.
async::Task<> remove_network(EngineApi& engine, std::string id) {
  const auto path = "/networks/" + net::url_encode(id);
  const auto until = std::chrono::steady_clock::now() + leave_timeout;
  for (;;) {
    try {
      co_await engine.call("DELETE", path);
      co_return;
    } catch (const EngineError& error) {
      if (error.status() == 404) co_return;
      const bool is_in_use = error.status() == 403 || error.status() == 409;
      if (!is_in_use || std::chrono::steady_clock::now() > until) throw;
    }
    co_await async::sleep(leave_pause);
  }
}

async::Task<> join_all(std::list<async::JoinableTask>& tasks) {
  std::exception_ptr error;
  for (auto& task : tasks) {
    co_await task.join();
    if (task.error()) error = task.error();
  }
  if (error) std::rethrow_exception(error);
}

/// Returns true if the engine has the network of this body: its name and all of its labels.
async::Task<bool> has_network(EngineApi& engine, json body) {
  std::optional<json> network;
  const auto path = "/networks/" + net::url_encode(docker::text_at(body, "Name"));
  try {
    network = co_await engine.call("GET", path);
  } catch (const EngineError& error) {
    if (error.status() != 404) throw;
  }
  const auto* theirs = network ? core::member(*network, "Labels") : nullptr;
  if (!theirs || !theirs->is_object()) co_return false;
  for (const auto& [label, value] : body.at("Labels").items())
    if (theirs->value(label, json()) != value) co_return false;
  co_return true;
}

}  // namespace

async::Task<> make_network(EngineApi& engine, json body) {
  std::optional<EngineError> refused;
  // Engines before API 1.44 would make another network of the same name.
  body["CheckDuplicate"] = true;
  try {
    co_await engine.call("POST", "/networks/create", body);
  } catch (const EngineError& error) {
    refused = error;
  }
  if (!refused) co_return;
  const std::string text = refused->what();
  if (text.find("already exists") != text.npos || text.find("already used") != text.npos) {
    // The engine has made the network before, but its answer was lost and the call repeated.
    const bool is_own = co_await has_network(engine, std::move(body));
    if (is_own) co_return;
  }
  if (text.find("address pool") == text.npos) throw *refused;
  throw EngineError(refused->status(), text,
                    {"each running step with services has a network of its own, and the engine has "
                     "no addresses left: run fewer at a time (`max_parallel`, `--jobs`)",
                     "`default-address-pools` in its daemon.json gives it more; `docker network "
                     "prune` removes networks that nobody uses"});
}

async::Task<> join_network(EngineApi& engine, std::string network, std::string container,
                           std::string address) {
  json body{{"Container", std::move(container)}};
  if (!address.empty()) body["EndpointConfig"] = endpoint_at(address);
  co_await engine.call("POST", "/networks/" + net::url_encode(network) + "/connect",
                       std::move(body));
}

async::Task<> remove_services(EngineApi& engine, std::vector<std::string> labels) {
  labels.emplace_back(service_label);
  const auto executor = co_await asio::this_coro::executor;
  std::list<async::JoinableTask> removals;
  const auto containers = co_await engine.list_containers(labels);
  for (const auto& container : containers)
    removals.emplace_back(executor, engine.remove_container(docker::text_at(container, "Id")));
  co_await join_all(removals);
  const auto networks = co_await networks_with(engine, labels);
  for (const auto& network : networks)
    co_await remove_network(engine, docker::text_at(network, "Id"));
}

async::Task<> remove_dead_networks(EngineApi& engine, std::vector<std::string> labels,
                                   const std::function<bool(const std::string&)>& is_alive) {
  labels.emplace_back(service_label);
  const auto networks = co_await networks_with(engine, std::move(labels));
  for (const auto& network : networks) {
    const auto run = network.value(json::json_pointer("/Labels/pipe.run"), std::string());
    if (!is_alive(run)) co_await remove_network(engine, docker::text_at(network, "Id"));
  }
}

}  // namespace pipeline::orchestrators::docker_engine
