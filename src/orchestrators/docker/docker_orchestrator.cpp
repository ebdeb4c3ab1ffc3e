#include "orchestrators/docker/docker_orchestrator.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <list>
#include <optional>
#include <sstream>

#include <sys/utsname.h>
#include <unistd.h>

#include "async/joinable_task.hpp"
#include "async/single_flight.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/random_name.hpp"
#include "core/scope_guard.hpp"
#include "core/user_environment.hpp"
#include "docker/json_text.hpp"
#include "model/findings.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/containers/step_images.hpp"
#include "orchestrators/docker/container_run.hpp"
#include "orchestrators/docker/container_shell.hpp"
#include "orchestrators/docker/emulation.hpp"
#include "orchestrators/docker/file_owner.hpp"
#include "orchestrators/docker/gpu_probe.hpp"
#include "orchestrators/docker/init_program.hpp"
#include "orchestrators/docker/node_network.hpp"
#include "orchestrators/docker/open_folders.hpp"
#include "orchestrators/docker/service_network.hpp"
#include "orchestrators/docker/service_spec.hpp"
#include "orchestrators/docker/services.hpp"
#include "orchestrators/docker/user_entry.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/stopped.hpp"
#include "orchestrators/usage/group_usage.hpp"
#include "orchestrators/usage/process_waits.hpp"
#include "settings/image_archive.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineError;
using nlohmann::json;

std::filesystem::path home_folder() {
  const char* home = std::getenv("HOME");
  return home ? home : "/";
}

std::string kernel_release() {
  utsname system{};
  uname(&system);
  return system.release;
}

class DockerOrchestrator : public OneEngine {
 public:
  DockerOrchestrator(asio::io_context& loop, OrchestratorOptions options, docker::Endpoint endpoint)
      : loop_(loop),
        options_(std::move(options)),
        engine_(loop, std::move(endpoint), docker::limits_from_environment(), options_.run),
        images_(loop, engine_, options_),
        users_(loop, engine_, options_.state),
        system_(loop) {
    capabilities_.name = "docker";
    capabilities_.traits = entry_of("docker").traits;
    capabilities_.gpus = capabilities_.explicit_devices = capabilities_.memory_limits =
        capabilities_.cpu_limits = true;
    capabilities_.infrastructure_retries = 3;
    capabilities_.shells = capabilities_.protects_inputs = capabilities_.reports_begin =
        capabilities_.services = true;
    capabilities_.gpus_of_this_machine = engine_.endpoint().is_of_this_machine();
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  docker::EngineApi& engine() override { return engine_; }

  async::Task<const json*> system() override {
    static const std::string key = "/info";
    const std::function<async::Task<json>()> ask = [this] { return engine_.system_info(); };
    if (!system_.find(key)) co_await system_.get(key, ask, nullptr);
    co_return system_.find(key);
  }

  async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) override {
    model::Findings found;
    for (const auto* step : steps) {
      const auto& platform = step->settings->docker.platform;
      // Another machine's kernel, also that of a local virtual machine, cannot be asked.
      if (!platform || !engine_.endpoint().is_of_this_machine()) continue;
      const auto* info = co_await engine_.info();
      const auto* engine_system = co_await system();
      if (engine_system->value("KernelVersion", std::string()) != kernel_release() ||
          !cannot_execute(*platform, info->architecture))
        continue;
      found.add({&step, 1},
                {"platform",
                 "asks for the platform " + *platform + ", but this machine is " + info->os + "/" +
                     info->architecture + " and has no emulator for it",
                 {},
                 {},
                 "run it where the engine is of that platform (DOCKER_HOST), or "
                 "register an emulator: the package `qemu-user-static` of Debian"});
    }
    co_return found.all();
  }

  async::Task<Environment> environment(const StepSpec& step) override {
    auto environment = co_await images_.environment(step);
    add_notice(step, environment);
    co_return environment;
  }

  async::Task<bool> matches(std::string fingerprint) override {
    return images_.matches(std::move(fingerprint));
  }

  async::Task<std::string> packages(const StepSpec& step) override {
    return images_.packages(step);
  }

  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override {
    return images_.builder().lock(step, events, cancel);
  }

  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override {
    auto environment = co_await images_.prepare(step, events, cancel);
    add_notice(step, environment);
    co_return environment;
  }

  /// Returns no lines for containers of another machine, whose processes this kernel does not have.
  async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) override {
    const auto& arguments = attempt.step.settings->docker.run_args;
    const auto init = arguments.find("init");
    const bool has_init = init == arguments.end() || *init->second == true;
    std::vector<std::string> lines;
    const auto group = co_await activity_.group_of(engine_, attempt);
    if (!group.exists()) co_return lines;
    auto processes = usage::processes_in(group);
    // The engine's init only waits for the step's command.
    if (has_init && processes.size() > 1) std::erase(processes, usage::first_process(group));
    for (auto& line : usage::waits_of_processes(processes))
      if (line.find(std::string(" ") + init_path + " init ") == line.npos)
        lines.push_back(std::move(line));
    co_return lines;
  }

  async::Task<std::optional<core::Activity>> activity_of(const Attempt& attempt) override {
    return activity_.activity_of(engine_, attempt);
  }

  async::Task<std::optional<int>> join(RunningProcess process, ShellRequest shell) override {
    return join_container(engine_, std::move(process), std::move(shell));
  }

  async::Task<std::optional<std::string>> ask(RunningProcess process,
                                              std::vector<std::string> words) override {
    return ask_container(engine_, std::move(process), std::move(words));
  }

  async::Task<bool> has_agents(const Attempt& attempt, unsigned nodes, unsigned ranks) override {
    const auto* engine = co_await engine_.info();
    const bool is_startable = !init(engine->architecture).empty();
    if (!is_startable && ranks > nodes)
      throw core::EnvironmentError(
          "several processes on a node of '" + attempt.step.name +
              "' are started by pipe's own program, which containers of this engine cannot run",
          {"let `torchrun` start them: leave `processes` out (docs/nodes.md)",
           "or put the state folder on a file system without `noexec`, on a machine with the "
           "engine's processor"});
    co_return is_startable;
  }

  async::Task<NodeAddresses> connect_nodes(const Attempt& attempt, unsigned nodes,
                                           unsigned ranks) override {
    const bool with_agents = co_await has_agents(attempt, nodes, ranks);
    NodeAddresses made;
    // Processes of one container reach one another in it, whatever its network.
    if (attempt.step.settings->docker.network == host_network || nodes == 1) {
      made = co_await Orchestrator::connect_nodes(attempt, nodes, ranks);
    } else {
      const auto options = options_of_network(attempt);
      // A dead driver may have left a network of this name.
      co_await remove_services(engine_, label_filters(attempt, options));
      made = co_await make_node_network(engine_, attempt, options, nodes);
    }
    made.has_agents = with_agents;
    made.secret = core::random_name() + core::random_name();
    co_return made;
  }

  async::Task<> disconnect_nodes(const Attempt& attempt) override {
    const auto executor = co_await asio::this_coro::executor;
    removals_.begin(executor,
                    remove_services(engine_, label_filters(attempt, options_of_network(attempt))));
  }

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    const core::ScopeGuard has_ended([this, &attempt] { activity_.forget(attempt); });
    AttemptResult result;
    std::optional<Failure> lost;
    try {
      co_return co_await run_or_throw(attempt);
    } catch (const net::TransportError& error) {
      lost = containers::engine_lost(error);
    } catch (const EngineError& error) {
      if (!docker::is_retryable(error.status(), error.what())) throw;
      lost = containers::engine_lost(error);
    }
    result.failure = attempt.io.cancel.level() == core::StopLevel::none ? lost : was_stopped();
    co_return result;
  }

  async::Task<AttemptResult> run_or_throw(const Attempt& attempt) {
    co_await remove_left_containers();
    auto image = co_await image_for(attempt);
    ContainerOptions options;
    options.image = image.id;
    options.root = options_.root;
    options.home = home_folder();
    options.owner = owner();
    options.user = co_await caller();
    options.program = image.program;
    if (attempt.process && !attempt.process->addresses->network.empty()) {
      options.network = attempt.process->addresses->network;
      if (options.network != host_network)
        options.address = attempt.process->addresses->nodes.at(attempt.process->node);
    }
    co_await users_.find(attempt, options);
    if (!attempt.gpus.empty()) {
      auto* access = options.gpu_access = co_await gpu_access();
      if (access->methods().empty())
        throw core::EnvironmentError("cannot give GPUs to the step '" + attempt.step.name +
                                     "': " + access->problem());
      options.memory = co_await memory();
      options.gate = settings::gpu_request(attempt.step.settings->resources).preflight;
    }
    std::optional<OpenFolders> opened;
    if (attempt.step.settings->docker.user)
      opened.emplace(std::vector{attempt.outputs, attempt.scratch, attempt.checkpoint});
    const auto* engine = co_await engine_.info();
    options.init = attempt.shell ? "" : init(engine->architecture);
    // Docker refuses to mount a folder that does not exist, which shows that it does not see this
    // machine's files. Podman creates the folder instead, so the folders are checked before.
    if (engine->podman) {
      elsewhere_ |= !engine_.endpoint().is_of_this_machine();
      if (auto missing = missing_volume(attempt.step, options); missing && !elsewhere_) {
        AttemptResult refused;
        refused.failure = std::move(missing);
        co_return refused;
      }
    }
    const bool is_mapped = co_await maps_users(attempt.step);
    options.elsewhere = elsewhere_ || is_mapped;
    if (attempt.shell) {
      options.gate = false;
      co_return co_await run_shell(engine_, attempt, options, image.reference);
    }
    auto result = co_await run_prepared(attempt, options, image.reference);
    if (!is_mapped) elsewhere_ |= options.elsewhere;
    if (attempt.step.settings->docker.user && !options.elsewhere)
      co_await take_over_files(engine_, attempt, options);
    result.image = image.id;
    result.node = co_await node();
    co_return result;
  }

  async::Task<AttemptResult> run_prepared(const Attempt& attempt, ContainerOptions& options,
                                          const std::string& image) {
    const RunContext context{engine_, attempt, image, removals_};
    if (attempt.step.services.empty()) co_return co_await run_container(context, options);
    const auto images = co_await images_.images_of_services(attempt.step);
    co_return co_await run_with_services(context, options, images);
  }

  /// Lists the GPUs in a container of the step's image, or of its parent image if only that is
  /// there. If neither is, builds the step's image.
  async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events,
                                                  core::CancelSource& cancel) override {
    if (!inventory_) {
      auto* access = co_await gpu_access();
      auto image = (co_await images_.builder().status(step)).image_id;
      const auto& parent = step.settings->docker.parent_image;
      if (image.empty() && parent && !settings::image_archive(*parent)) {
        const auto found = co_await engine_.inspect_image(*parent);
        if (found) image = *parent;
      }
      if (image.empty()) image = (co_await images_.builder().ensure(step, events, cancel)).image_id;
      StringMap labels;
      labels["pipe.run"] = options_.run_id;
      labels["pipe.state"] = owner();
      inventory_ = co_await probe_gpus(engine_, *access, image, std::move(labels), cancel);
      if (!capabilities_.gpus_of_this_machine) inventory_->owner = "the engine's machine";
    }
    co_return inventory_;
  }

  async::Task<std::vector<GpuHold>> gpus_in_use() override {
    std::vector<GpuHold> holds;
    std::vector<std::string> labels;
    labels.push_back(gpus_label);
    const auto containers = co_await engine_.list_containers(labels);
    for (const auto& container : containers) {
      const auto state = container.value("State", std::string());
      if (state != "running" && state != "paused" && state != "restarting") continue;
      const auto own = container.value("Labels", json::object());
      const auto name =
          container.value(json::json_pointer("/Names/0"), container.value("Id", std::string()));
      std::istringstream uuids(own.value(gpus_label, std::string()));
      for (std::string uuid; std::getline(uuids, uuid, ',');)
        holds.push_back({uuid, own.value("pipe.run", ""), own.value("pipe.step", ""),
                         "container " + name.substr(name.starts_with('/') ? 1 : 0)});
    }
    co_return holds;
  }

  async::Task<> settle() override {
    try {
      co_await remove_left_containers();
    } catch (const core::EnvironmentError& error) {  // A warning has named the containers.
      core::log::info(error.what());
    }
    co_await removals_.settle();
  }

  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override {
    std::vector<std::string> labels;
    labels.push_back("pipe.run");
    labels.push_back("pipe.state=" + owner());
    const auto containers = co_await engine_.list_containers(labels);
    std::list<async::JoinableTask> removals;
    for (const auto& container : containers) {
      const auto run = container.value(json::json_pointer("/Labels/pipe.run"), std::string());
      if (is_alive(run)) continue;
      removals.emplace_back(loop_.get_executor(),
                            engine_.remove_container(container.at("Id").get<std::string>()));
    }
    std::exception_ptr error;
    for (auto& removal : removals) {
      co_await removal.join();
      if (removal.error()) error = removal.error();
    }
    if (error) std::rethrow_exception(error);
    co_await remove_dead_networks(engine_, std::move(labels), is_alive);
  }

 private:
  ContainerOptions options_of_network(const Attempt& attempt) {
    ContainerOptions options;
    options.owner = owner();
    options.network = container_name(attempt);
    return options;
  }

  /// Removes the containers that could not be removed when their attempts ended, for example
  /// because the engine was restarting. Throws if one of them still runs: it may be an earlier
  /// attempt of a step that is about to run, and the run considers its GPUs free.
  async::Task<> remove_left_containers() {
    if (removals_.left().empty()) co_return;
    std::vector<std::string> labels;
    labels.push_back("pipe.run=" + options_.run_id);
    labels.push_back("pipe.state=" + owner());
    const auto containers = co_await engine_.list_containers(labels);
    for (const auto& container : containers) {
      const auto id = container.at("Id").get<std::string>();
      if (!removals_.left().contains(id)) continue;
      try {
        co_await engine_.remove_container(id);
        removals_.forget_left(id);
      } catch (const EngineError&) {
        if (container.value("State", std::string()) == "running") throw;
      }
    }
  }

  /// Returns the step's image; for a shell, the image that its attempt ran in, which may be older.
  async::Task<containers::StepImage> image_for(const Attempt& attempt) {
    if (!attempt.shell || attempt.shell->image.empty())
      co_return co_await images_.image_of(attempt.step);
    containers::StepImage image;
    image.reference = attempt.shell->image;
    const auto found = co_await engine_.inspect_image(image.reference);
    if (!found)
      throw core::EnvironmentError(
          "the engine does not have the image " + image.reference + " of the attempt any more",
          {"run the step again, and open a shell in that run"});
    image.id = found->at("Id").get<std::string>();
    co_return image;
  }

  /// Adds a notice that folders of volumes are on the engine's machine, if that is another one.
  void add_notice(const StepSpec& step, Environment& environment) const {
    const auto& url = engine_.endpoint().url;
    const auto& volumes = step.settings->docker.volumes.items();
    const bool by_path = std::any_of(volumes.begin(), volumes.end(), [](const std::string& volume) {
      return std::string_view("/.~").find(volume.front()) != std::string_view::npos;
    });
    if (!url.starts_with("unix://") && by_path)
      environment.notices.push_back(
          "the folders under `docker.volumes` are taken from the engine's machine (" + url +
          "), not from this one");
  }

  const std::string& owner() {
    if (owner_.empty()) owner_ = owner_of(options_.state);
    return owner_;
  }

  /// Returns the file of init_program(), made once.
  const std::filesystem::path& init(const std::string& architecture) {
    if (!init_) init_ = init_program(options_.state, architecture);
    return *init_;
  }

  /// Returns the name of the engine's machine.
  async::Task<std::string> node() {
    if (engine_.endpoint().is_of_this_machine()) co_return machine_name();
    const auto* info = co_await system();
    co_return docker::text_at(*info, "Name");
  }

  /// Returns the memory of the engine's machine; 0 if it is unknown.
  async::Task<Bytes> memory() {
    const auto* info = co_await system();
    co_return info->value("MemTotal", Bytes{0});
  }

  async::Task<docker::GpuAccess*> gpu_access() {
    const auto* info = co_await system();
    const auto* engine = co_await engine_.info();
    if (!gpu_access_) {
      gpu_access_.emplace(*engine, *info);
      if (!gpu_access_->methods().empty())
        core::log::info("engine: GPUs by " +
                        std::string(to_string(gpu_access_->methods().front())));
    }
    co_return &*gpu_access_;
  }

  /// Returns the UID:GID in a container whose files the invoking user owns. In a rootless engine,
  /// that is the container's root.
  async::Task<std::string> caller() {
    if (caller_.empty()) {
      auto user = core::user_and_group();
      if (geteuid() != 0 && docker::has_security_option(*co_await system(), "rootless"))
        user = "0:0";
      caller_ = user;
    }
    co_return caller_;
  }

  /// Returns true if the engine gives the container's users other numbers on its machine
  /// (userns-remap), so that none of them could write to the attempt's folders or read private
  /// ones.
  async::Task<bool> maps_users(const StepSpec& step) {
    const auto& arguments = step.settings->docker.run_args;
    const auto mode = arguments.find("userns_mode");
    if (mode != arguments.end() && *mode->second == "host") co_return false;
    co_return docker::has_security_option(*co_await system(), "userns");
  }

  asio::io_context& loop_;
  OrchestratorOptions options_;
  docker::EngineApi engine_;
  Removals removals_;
  ContainerActivity activity_;
  containers::StepImages images_;
  UserEntries users_;
  Capabilities capabilities_;
  std::string owner_, caller_;
  async::SingleFlight<json> system_;
  std::optional<docker::GpuAccess> gpu_access_;
  std::optional<gpu::Inventory> inventory_;
  std::optional<std::filesystem::path> init_;
  /// The engine does not see this machine's files; known from the first container on.
  bool elsewhere_ = false;
};

}  // namespace

std::unique_ptr<OneEngine> make_one_engine(asio::io_context& loop, OrchestratorOptions options,
                                           docker::Endpoint endpoint) {
  return std::make_unique<DockerOrchestrator>(loop, std::move(options), std::move(endpoint));
}

}  // namespace pipeline::orchestrators::docker_engine
