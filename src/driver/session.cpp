#include "driver/session.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <random>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "docker/engines.hpp"
#include "driver/invocation.hpp"
#include "engine/graph/selection.hpp"
#include "orchestrators/executor/executor_orchestrator.hpp"
#include "remote_cache/blob_cache.hpp"

namespace pipeline::driver {
namespace {

std::string new_run_id() {
  using namespace std::chrono;
  return core::make_run_id(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(),
      std::random_device{}());
}

/// Opens the state folder. Reads the pipeline first if there is no such folder, so that an invalid
/// file leaves none behind.
store::RunStore& open_state(Workspace& workspace, PipelineSource& source) {
  const auto state = workspace.state_beside(source.file());
  std::error_code error;
  if (!std::filesystem::exists(state, error)) source.pipeline();
  return workspace.store(state);
}

/// Returns the remote store that the options name; null if they name none.
std::unique_ptr<blobs::RemoteArtifacts> open_remote_store(Workspace& workspace) {
  const auto& settings = workspace.options().remote_store;
  if (!settings.is_given()) return nullptr;
  return std::make_unique<blobs::RemoteArtifacts>(workspace.loop(), settings, blobs::store_retries,
                                                  &workspace.run_stop());
}

/// Throws InputError if `--step`, also called `--until`, leaves out a step that another option
/// names.
void check_selected(PipelineSource& source, const std::string& until, const std::string& option,
                    const std::vector<std::string>& names) {
  if (until.empty() || names.empty()) return;
  const auto selected = engine::select_steps(source.pipeline(), until);
  for (const auto& name : names)
    if (std::ranges::none_of(engine::steps_called(source.pipeline(), name), [&](std::size_t i) {
          return std::ranges::binary_search(selected, i);
        }))
      throw core::InputError(option + " " + name + ": --step " + until + " leaves out this step",
                             "leave out --step, or write `--step " + name + "`");
}

/// Returns true if a process listens on the socket, even if it does not respond.
bool has_listener(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  const core::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return socket &&
         ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Session::Session(Workspace& opened, std::string id, DetachedRecord* detached)
    : workspace(opened),
      source(opened),
      run_id(id.empty() ? new_run_id() : std::move(id)),
      store(open_state(opened, source)),
      artifacts_lock_(
          store::StateLock::keep_artifacts(store.folder(),
                                           [&] {
                                             opened.note("waiting for `" + opened.options().name +
                                                         " clean`, which removes artifacts");
                                           })),
      code_(source.code(store.folder() / "scripts")),
      lock_(lockfile::lock_beside(source.file()), opened.options().lock),
      remote_store_(open_remote_store(opened)),
      remote_cache_(remote_store_
                        ? remote_cache::make_blob_cache(*remote_store_, opened.artifacts())
                        : nullptr),
      routes_(opened.options().orchestrator, [this, detached](const std::string& name) {
        return make_orchestrator(workspace, name,
                                 {.root = source.file().parent_path(),
                                  .state = store.folder(),
                                  .template_dir = workspace.options().template_dir,
                                  .run_id = run_id,
                                  .lock = &lock_,
                                  .connection = workspace.options().connection,
                                  .artifacts = remote_store_.get(),
                                  .owner = detached ? detached->owner : "",
                                  .images = detached ? &detached->images : nullptr,
                                  .run = &workspace.run_stop()});
      }) {}

gpu::Machine& Session::machine() {
  if (!machine_) machine_ = std::make_unique<gpu::Machine>();
  return *machine_;
}

std::optional<std::vector<std::filesystem::path>> Session::settle_lock() {
  if (workspace.options().step.empty()) lock_.remove_unused();
  if (!lock_.is_current()) return std::nullopt;
  return std::vector{lock_.path()};
}

engine::EngineOptions Session::run_options() {
  const auto& options = workspace.options();
  check_selected(source, options.step, "--force", options.force);
  check_selected(source, options.step, "--from", options.from);
  return {.jobs = options.jobs,
          .use_cache = !options.no_cache,
          .force = options.force,
          .from = options.from,
          .only_step = options.step,
          .run_id = run_id,
          .remote_cache = remote_cache_.get()};
}

std::unique_ptr<orchestrators::Orchestrator> make_orchestrator(
    Workspace& workspace, const std::string& name, orchestrators::OrchestratorOptions options) {
  if (auto* executor = workspace.options().executor; executor && name == executor->name())
    return orchestrators::make_executor_orchestrator(workspace.loop(), *executor);
  return orchestrators::make_orchestrator(name, workspace.loop(), std::move(options));
}

void require_engine(Session& session) {
  auto& workspace = session.workspace;
  const auto steps = session.source.selected_steps();
  // Images for a cluster are built on an engine, too.
  bool only_builds = false, runs_steps = false;
  for (const auto* step : steps) {
    const auto& traits = session.routes().capabilities_of(*step).traits;
    only_builds |= traits.needs_engine && !traits.runs_on_engine;
    runs_steps |= traits.runs_on_engine;
  }
  std::vector<docker::RunEngine> engines;
  if (only_builds) engines = docker::find_engines({});
  if (runs_steps)
    for (auto& each : docker::find_engines(workspace.options().connection))
      engines.push_back(std::move(each));
  constexpr std::string_view unix_scheme = "unix://";
  for (const auto& [endpoint, address] : engines) {
    if (endpoint.url.starts_with(unix_scheme) &&
        has_listener(endpoint.url.substr(unix_scheme.size())))
      continue;
    docker::EngineApi engine(workspace.loop(), endpoint);
    // The error of this request names the addresses that were tried, and advises how to work
    // without an engine.
    workspace.await(engine.info());
  }
}

std::optional<WorkspaceOptions> recorded_options(store::RunStore& store, const std::string& run,
                                                 WorkspaceOptions caller) {
  auto recorded = invocation_of(store, run);
  if (!recorded) return std::nullopt;
  if (caller.jobs > 0) recorded->jobs = caller.jobs;
  static_cast<Invocation&>(caller) = std::move(*recorded);
  caller.state = store.folder();
  return caller;
}

kubernetes_api::AccessOptions cluster_of(const WorkspaceOptions& options) {
  return {.context = orchestrators::connection_field(options.connection, "context"),
          .name_space = orchestrators::connection_field(options.connection, "namespace")};
}

store::RunRecord find_run(const Workspace& workspace, const std::string& name, Drivers& drivers,
                          store::RunStore& store) {
  auto run = workspace.find_run(store, name);
  drivers.update(run);
  return run;
}

}  // namespace pipeline::driver
