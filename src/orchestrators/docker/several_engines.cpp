#include "orchestrators/docker/several_engines.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/random_name.hpp"
#include "docker/json_text.hpp"
#include "model/findings.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "orchestrators/docker/engine_addresses.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::text_at;

bool wants_gpus(const StepSpec& step) {
  return settings::gpu_request(step.settings->resources).wanted();
}

class SeveralEngines : public Orchestrator {
 public:
  SeveralEngines(asio::io_context& loop, const OrchestratorOptions& options,
                 std::vector<docker::RunEngine> engines)
      : entries_(std::move(engines)) {
    for (const auto& [endpoint, address] : entries_)
      engines_.push_back(make_one_engine(loop, options, endpoint));
    capabilities_ = first().capabilities();
    capabilities_.gpus_of_this_machine = std::ranges::all_of(
        engines_, [](const auto& engine) { return engine->capabilities().gpus_of_this_machine; });
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) override {
    co_await require_different_engines();
    model::Findings found;
    bool has_nodes = false;
    for (const auto* step : steps) {
      if (step->nodes.count < 2) continue;
      has_nodes = true;
      const auto network = step->settings->docker.network.value_or(host_network);
      if (network == host_network) continue;
      found.add({&step, 1},
                {"no-nodes",
                 "has nodes on several engines, which have no network '" + network + "' in common",
                 {},
                 {"they meet in the network of their machines, `network: host`"},
                 "leave `network` out, or run it on one engine"});
    }
    if (has_nodes) co_await find_addresses();
    auto all = found.all();
    for (auto& each : co_await first().check(steps)) all.push_back(std::move(each));
    co_return all;
  }

  async::Task<Environment> environment(const StepSpec& step) override {
    return first().environment(step);
  }
  async::Task<bool> matches(std::string fingerprint) override {
    return first().matches(std::move(fingerprint));
  }
  async::Task<std::string> packages(const StepSpec& step) override {
    return first().packages(step);
  }
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override {
    return first().lock(step, events, cancel);
  }

  /// Prepares the image on the first engine before the others, because the first one chooses the
  /// versions of packages.
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override {
    const bool is_everywhere = step.nodes.count > 1 || wants_gpus(step);
    auto environment = co_await first().prepare(step, events, cancel);
    for (std::size_t i = 1; i < engines_.size() && is_everywhere; ++i) {
      auto other = co_await engines_[i]->prepare(step, events, cancel);
      std::ranges::move(other.notices, std::back_inserter(environment.notices));
      if (other.id == environment.id) continue;
      throw core::EnvironmentError(
          "the image of '" + step.name + "' on " + url_of(i) + " differs from that on " +
              url_of(0) + ": " + other.description + " and " + environment.description,
          {"pull the parent image on both engines, so that both have the same one",
           "or name it by its digest, as in `parent_image: python:3.12-slim@sha256:...`"});
    }
    co_return environment;
  }

  async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events,
                                                  core::CancelSource& cancel) override {
    std::optional<gpu::Inventory> all;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      auto own = co_await engines_[i]->gpus(step, events, cancel);
      if (!own || own->unavailable) {
        if (!all && i + 1 == engines_.size()) all = std::move(own);
        continue;
      }
      if (!all) {
        all.emplace();
        for (const auto& [endpoint, address] : entries_) all->machines.push_back(endpoint.url);
        all->driver = own->driver;
        all->cuda = own->cuda;
      }
      for (auto& device : own->devices) {
        device.machine = static_cast<unsigned>(i);
        if (add_owner(device, i)) all->devices.push_back(std::move(device));
      }
    }
    co_return all;
  }

  async::Task<std::vector<GpuHold>> gpus_in_use() override {
    std::vector<GpuHold> holds;
    for (const auto& engine : engines_) {
      auto own = co_await engine->gpus_in_use();
      std::ranges::move(own, std::back_inserter(holds));
    }
    co_return holds;
  }

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    return engine_of(attempt).run(attempt);
  }
  async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) override {
    return engine_of(attempt).waits_of(attempt);
  }

  async::Task<std::optional<core::Activity>> activity_of(const Attempt& attempt) override {
    return engine_of(attempt).activity_of(attempt);
  }
  /// The engine that has the container joins it.
  async::Task<std::optional<int>> join(RunningProcess process, ShellRequest shell) override {
    for (const auto& engine : engines_)
      if (auto exit_code = co_await engine->join(process, shell)) co_return exit_code;
    co_return std::nullopt;
  }
  async::Task<std::optional<std::string>> ask(RunningProcess process,
                                              std::vector<std::string> words) override {
    for (const auto& engine : engines_)
      if (auto printed = co_await engine->ask(process, words)) co_return printed;
    co_return std::nullopt;
  }

  /// Lets the engine make a network if all nodes are on one engine. Otherwise chooses ports at
  /// random among those that are free on this machine; the free ports of other machines are not
  /// known.
  async::Task<NodeAddresses> connect_nodes(const Attempt& attempt, unsigned nodes,
                                           unsigned ranks) override {
    const auto indices = engines_of_nodes(attempt, nodes);
    if (auto* only = only_engine(indices))
      co_return co_await only->connect_nodes(attempt, nodes, ranks);
    co_await find_addresses();
    auto made = co_await Orchestrator::connect_nodes(attempt, nodes, ranks);
    made.network = host_network;
    made.secret = core::random_name() + core::random_name();
    made.has_agents = true;
    for (const auto& engine : engines_) {
      const bool has_agents = co_await engine->has_agents(attempt, nodes, ranks);
      made.has_agents &= has_agents;
    }
    for (unsigned node = 0; node < nodes; ++node) made.nodes[node] = addresses_[indices[node]];
    co_return made;
  }

  async::Task<> disconnect_nodes(const Attempt& attempt) override {
    const auto indices = engines_of_nodes(attempt, attempt.step.nodes.count);
    if (auto* only = only_engine(indices)) co_await only->disconnect_nodes(attempt);
  }

  async::Task<> settle() override {
    const std::function<async::Task<>(OneEngine&)> settle = [](OneEngine& engine) {
      return engine.settle();
    };
    co_await on_all(settle);
  }

  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override {
    const std::function<async::Task<>(OneEngine&)> remove = [&is_alive](OneEngine& engine) {
      return engine.remove_orphans(is_alive);
    };
    co_await on_all(remove);
  }

 private:
  OneEngine& first() const { return *engines_.front(); }
  const std::string& url_of(std::size_t engine) const { return entries_[engine].endpoint.url; }

  /// Calls `act` with each engine. If a call fails, continues with the other engines, and throws
  /// the error at the end.
  async::Task<> on_all(const std::function<async::Task<>(OneEngine&)>& act) const {
    std::exception_ptr error;
    for (const auto& engine : engines_) {
      try {
        co_await act(*engine);
      } catch (...) {
        error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
  }

  /// Throws EnvironmentError if two entries are one engine, or the engines' processors differ. An
  /// ID alone does not identify an engine: two daemons on one machine may have the same ID, and so
  /// may copies of a virtual machine.
  async::Task<> require_different_engines() {
    std::map<std::string, std::size_t> known;
    std::string architecture;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      const auto* info = co_await engines_[i]->engine().info();
      const auto* system = co_await engines_[i]->system();
      if (architecture.empty()) architecture = info->architecture;
      if (info->architecture != architecture)
        throw core::EnvironmentError(
            "the engines of a profile have one kind of processor: " + url_of(0) + " is " +
                architecture + ", " + url_of(i) + " is " + info->architecture,
            {"leave one of them out of `engines`"});
      const auto identity = text_at(*system, "ID") + " " + text_at(*system, "Name") + " " +
                            text_at(*system, "DockerRootDir");
      const auto [other, is_new] = known.emplace(identity, i);
      if (!is_new)
        throw core::EnvironmentError(
            url_of(other->second) + " and " + url_of(i) + " are the same engine, on " +
                text_at(*system, "Name"),
            {"leave one of them out of `engines`: two nodes of a step can be on the same engine"});
    }
  }

  async::Task<> find_addresses() {
    if (addresses_.empty()) addresses_ = co_await addresses_of(entries_);
  }

  /// Records that the engine has this GPU. Returns false if another engine on the same machine was
  /// recorded before.
  bool add_owner(const gpu::Device& device, std::size_t engine) {
    const auto [owner, is_new] = owners_.emplace(device.uuid, engine);
    for (const auto& slice : device.slices) owners_.emplace(slice.uuid, owner->second);
    return owner->second == engine;
  }

  /// Returns the index of a node's engine.
  /// @param gpu UUID of the node's first GPU; null: it has none
  std::size_t index_of(unsigned node, unsigned nodes, const std::string* gpu) const {
    const auto owner = gpu ? owners_.find(*gpu) : owners_.end();
    return owner != owners_.end() ? owner->second : engine_of_node(node, nodes, engines_.size());
  }

  /// Returns the index of each node's engine.
  /// @param attempt the whole attempt, with the GPUs of all nodes
  std::vector<std::size_t> engines_of_nodes(const Attempt& attempt, unsigned nodes) const {
    const auto gpus = attempt.gpus.size() / nodes;
    std::vector<std::size_t> indices;
    for (unsigned node = 0; node < nodes; ++node)
      indices.push_back(index_of(node, nodes, gpus ? &attempt.gpus[node * gpus].uuid : nullptr));
    return indices;
  }

  /// Returns null for nodes on different engines.
  OneEngine* only_engine(const std::vector<std::size_t>& indices) const {
    const bool is_one = std::ranges::count(indices, indices.front()) == std::ssize(indices);
    return is_one ? engines_[indices.front()].get() : nullptr;
  }

  OneEngine& engine_of(const Attempt& attempt) const {
    const auto* gpu = attempt.gpus.empty() ? nullptr : &attempt.gpus.front().uuid;
    const auto& process = attempt.process;
    return *engines_[index_of(process ? process->node : 0, process ? process->nodes : 1, gpu)];
  }

  const std::vector<docker::RunEngine> entries_;
  std::vector<std::unique_ptr<OneEngine>> engines_;
  Capabilities capabilities_;
  std::vector<std::string> addresses_;  ///< One for each engine; empty before find_addresses().
  std::map<std::string, std::size_t> owners_;  ///< Engines by the UUIDs of their GPUs.
};

}  // namespace

std::unique_ptr<Orchestrator> make_several_engines(asio::io_context& loop,
                                                   const OrchestratorOptions& options,
                                                   std::vector<docker::RunEngine> engines) {
  return std::make_unique<SeveralEngines>(loop, options, std::move(engines));
}

}  // namespace pipeline::orchestrators::docker_engine

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_docker_orchestrator(asio::io_context& loop,
                                                       OrchestratorOptions options) {
  auto engines = docker::find_engines(options.connection);
  if (engines.size() > 1)
    return docker_engine::make_several_engines(loop, options, std::move(engines));
  return docker_engine::make_one_engine(loop, std::move(options),
                                        std::move(engines.front().endpoint));
}

}  // namespace pipeline::orchestrators
