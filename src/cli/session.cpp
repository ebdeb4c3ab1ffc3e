#include "cli/session.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <random>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "detached/invocation.hpp"
#include "detached/recovery.hpp"
#include "docker/engine_api.hpp"
#include "engine/graph/selection.hpp"
#include "orchestrators/executor/executor_orchestrator.hpp"
#include "orchestrators/routing_orchestrator.hpp"
#include "remote_cache/blob_cache.hpp"

namespace pipeline::cli {
namespace {

std::string new_run_id() {
  using namespace std::chrono;
  return core::make_run_id(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(),
      std::random_device{}());
}

store::RunStore& open_state(Context& context, PipelineSource& source) {
  const auto state = context.state_beside(source.file());
  std::error_code error;
  if (!std::filesystem::exists(state, error)) source.pipeline();
  return context.store(state);
}

/// Throws InputError for a step that the option names and that `--until` leaves out.
void check_selected(PipelineSource& source, const std::string& until, const std::string& option,
                    const std::vector<std::string>& names) {
  if (until.empty() || names.empty()) return;
  const auto selected = engine::select_steps(source.pipeline(), until);
  for (const auto& name : names)
    if (std::ranges::none_of(engine::steps_called(source.pipeline(), name), [&](std::size_t i) {
          return std::ranges::binary_search(selected, i);
        }))
      throw core::InputError(option + " " + name + ": --until " + until + " leaves out this step",
                             "leave out --until, or write `--until " + name + "`");
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

Session::Session(Context& c, std::string id, detached::DetachedRecord* detached)
    : context(c),
      source(c),
      run_id(id.empty() ? new_run_id() : std::move(id)),
      store(open_state(c, source)),
      artifacts_stay_(store::StateLock::keep_artifacts(store.folder(),
                                                       [&] {
                                                         c.note("waiting for `" + c.options().name +
                                                                " clean`, which removes artifacts");
                                                       })),
      code_(source.code(store.folder() / "scripts")),
      lock_(lockfile::lock_beside(source.file()), c.options().lock),
      remote_store_(c.options().remote_store.is_given() ? std::make_unique<blobs::RemoteArtifacts>(
                                                              c.loop(), c.options().remote_store)
                                                        : nullptr),
      remote_cache_(remote_store_ ? remote_cache::make_blob_cache(*remote_store_, c.artifacts())
                                  : nullptr),
      orchestrator_(orchestrators::make_routing_orchestrator(
          c.options().orchestrator, [this, detached](const std::string& name) {
            return make_orchestrator(context, name,
                                     {.root = source.file().parent_path(),
                                      .state = store.folder(),
                                      .template_dir = context.options().template_dir,
                                      .run_id = run_id,
                                      .lock = &lock_,
                                      .connection = detached::connection_of(context.options()),
                                      .artifacts = remote_store_.get(),
                                      .owner = detached ? detached->owner : "",
                                      .images = detached ? &detached->images : nullptr});
          })) {}

gpu::Machine& Session::machine() {
  if (!machine_) machine_ = std::make_unique<gpu::Machine>();
  return *machine_;
}

std::optional<std::vector<std::filesystem::path>> Session::settle_lock() {
  if (context.options().step.empty()) lock_.remove_unused();
  if (!lock_.is_current()) return std::nullopt;
  return std::vector{lock_.path()};
}

engine::EngineOptions Session::run_options() {
  const auto& options = context.options();
  check_selected(source, options.step, "--force", options.force);
  check_selected(source, options.step, "--from", options.from);
  return {.jobs = options.jobs,
          .use_cache = !options.no_cache,
          .force = options.force,
          .from = options.from,
          .only_step = options.step,
          .run_id = run_id,
          .shared = remote_cache_.get()};
}

std::unique_ptr<orchestrators::Orchestrator> make_orchestrator(
    Context& context, const std::string& name, orchestrators::OrchestratorOptions options) {
  if (auto* executor = context.options().executor; executor && name == executor->name())
    return orchestrators::make_executor_orchestrator(context.loop(), *executor);
  return orchestrators::make_orchestrator(name, context.loop(), std::move(options));
}

void require_engine(Session& session) {
  auto& context = session.context;
  const auto steps = session.source.selected_steps();
  // A cluster's images are built on an engine, too.
  if (std::ranges::none_of(steps, [&](const StepSpec* step) {
        return session.orchestrator().capabilities_of(*step).traits.needs_engine;
      }))
    return;
  const auto endpoint = docker::find_endpoint();
  constexpr std::string_view unix_scheme = "unix://";
  if (endpoint.url.starts_with(unix_scheme) &&
      has_listener(endpoint.url.substr(unix_scheme.size())))
    return;
  docker::EngineApi engine(context.loop(), endpoint);
  context.await(
      engine.info());  // Its error names what was tried, and how to work without an engine.
}

std::vector<store::RunRecord> recover_dead_runs(Context& context, store::RunStore& store,
                                                const std::string& resumed,
                                                const std::string& gone) {
  return detached::recover_dead_runs(
      context.driver_context(), store, context.options(),
      [&](const std::string& name, orchestrators::OrchestratorOptions options) {
        return make_orchestrator(context, name, std::move(options));
      },
      resumed, gone);
}

std::optional<Options> recorded_options(store::RunStore& store, const std::string& run,
                                        Options caller) {
  auto recorded = detached::invocation_of(store, run);
  if (!recorded) return std::nullopt;
  if (caller.jobs > 0) recorded->jobs = caller.jobs;
  static_cast<detached::Invocation&>(caller) = std::move(*recorded);
  caller.state = store.folder();
  return caller;
}

kubernetes_api::AccessOptions cluster_of(const Options& options) {
  return {.context = options.context, .name_space = options.name_space};
}

store::RunRecord find_run(const Context& context, detached::Drivers& drivers,
                          store::RunStore& store) {
  auto run = context.find_run(store);
  drivers.update(run);
  return run;
}

}  // namespace pipeline::cli
