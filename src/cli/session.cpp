#include "cli/session.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include "cli/step_errors.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "detached/invocation.hpp"
#include "docker/engine_api.hpp"
#include "engine/attempt.hpp"
#include "engine/decision.hpp"
#include "orchestrators/executor/executor_orchestrator.hpp"
#include "orchestrators/routing_orchestrator.hpp"
#include "remote_cache/bucket_cache.hpp"

namespace pipeline::cli {
namespace {

std::string new_run_id() {
  using namespace std::chrono;
  return core::make_run_id(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(),
      std::random_device{}());
}

/// Whether somebody listens on the socket; says nothing of whether he answers.
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
      file(c.pipeline_file()),
      run_id(id.empty() ? new_run_id() : std::move(id)),
      runs(open_state()),
      artifacts_stay_(runs.keep_artifacts([&] {
        c.note("waiting for `" + c.options().name + " clean`, which removes artifacts");
      })),
      bucket(c.options().artifact_store.is_given()
                 ? std::make_unique<s3::Artifacts>(c.loop(), c.options().artifact_store)
                 : nullptr),
      remote_cache(bucket ? remote_cache::make_bucket_cache(*bucket, c.artifacts()) : nullptr),
      orchestrator(orchestrators::make_routing_orchestrator(
          c.options().orchestrator, [this, detached](const std::string& name) {
            return make_orchestrator(context, name,
                                     {.root = file.parent_path(),
                                      .state = runs.folder(),
                                      .template_dir = context.options().template_dir,
                                      .run_id = run_id,
                                      .context = context.options().context,
                                      .name_space = context.options().name_space,
                                      .claim = context.options().claim,
                                      .claim_path = context.options().claim_path,
                                      .artifacts = bucket.get(),
                                      .owner = detached ? detached->owner : "",
                                      .images = detached ? &detached->images : nullptr});
          })) {
  code_.files = [this](const StepSpec& step) -> const std::vector<store::TreeEntry>& {
    const spec::CodeSet* set = nullptr;
    StepErrors errors;
    errors.attempt(step, [&] { set = &resolver().code_of(step); });
    errors.report(pipeline());
    const auto [tree, is_new] = trees_.try_emplace({set, step.files});
    if (is_new) {
      for (const auto& found : set->files)
        tree->second.push_back({found.relative_path, found.source});
      add_files(step, tree->second);
    }
    return tree->second;
  };
  code_.missing_file = [this](const StepSpec& step, std::string_view output) {
    return resolver().missing_file(step, output);
  };
}

store::RunStore& Session::open_state() {
  const auto state = context.state_beside(file);
  std::error_code error;
  if (!std::filesystem::exists(state, error)) pipeline();
  return context.runs(state);
}

/// Texts of the program become files, named by their content, so that what is unchanged keeps its
/// time stamp.
void Session::add_files(const StepSpec& step, std::vector<store::TreeEntry>& tree) {
  for (const auto& [name, text] : step.files) {
    const auto path = runs.folder() / "scripts" / core::sha256(text).hex();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      core::make_folders(path.parent_path());
      core::write_file_atomically(path, text);
    }
    std::erase_if(
        tree, [&own = name](const store::TreeEntry& entry) { return entry.relative_path == own; });
    tree.push_back({name, path});
  }
  std::ranges::sort(tree, {}, &store::TreeEntry::relative_path);
}

const PipelineSpec& Session::pipeline() {
  if (!pipeline_) pipeline_ = context.load_pipeline(&is_task_);
  return *pipeline_;
}

gpu::Machine& Session::machine() {
  if (!machine_) machine_ = std::make_unique<gpu::Machine>();
  return *machine_;
}

spec::CodeResolver& Session::resolver() {
  if (!resolver_) resolver_.emplace(pipeline());
  return *resolver_;
}

std::vector<std::filesystem::path> Session::sources() {
  std::set<std::filesystem::path> sources(pipeline().sources.begin(), pipeline().sources.end());
  std::set<const spec::CodeSet*> seen;
  for (const auto* step : selected_steps()) {
    const auto& set = resolver().code_of(*step);
    if (seen.insert(&set).second) sources.insert(set.looked_at.begin(), set.looked_at.end());
  }
  std::error_code ignored;
  if (const auto& folder = context.options().template_dir; !folder.empty())
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
      sources.insert(entry.path());
  return {sources.begin(), sources.end()};
}

engine::RunOptions Session::run_options() const {
  const auto& options = context.options();
  return {.jobs = options.jobs,
          .use_cache = !options.no_cache,
          .only_step = options.step,
          .run_id = run_id,
          .shared = remote_cache.get()};
}

std::vector<const StepSpec*> Session::selected_steps() {
  std::vector<const StepSpec*> selected;
  for (const auto i : engine::select_steps(pipeline(), context.options().step))
    selected.push_back(&pipeline().steps[i]);
  return selected;
}

std::unique_ptr<orchestrators::Orchestrator> make_orchestrator(
    Context& context, const std::string& name, orchestrators::OrchestratorOptions options) {
  if (auto* executor = context.options().executor; executor && name == executor->name())
    return orchestrators::make_executor_orchestrator(context.loop(), *executor);
  if (name == "local")
    return orchestrators::make_local_orchestrator(context.loop(), std::move(options));
  if (name == "kubernetes")
    return orchestrators::make_kubernetes_orchestrator(context.loop(), std::move(options));
  return orchestrators::make_docker_orchestrator(context.loop(), std::move(options));
}

void require_engine(Session& session) {
  auto& context = session.context;
  const auto steps = session.selected_steps();
  // A cluster's images are made on an engine, too.
  if (std::ranges::none_of(steps, [&](const StepSpec* step) {
        const auto& name = session.orchestrator->capabilities_of(*step).name;
        return name == "docker" || name == "kubernetes";
      }))
    return;
  const auto endpoint = docker::find_endpoint();
  constexpr std::string_view unix_scheme = "unix://";
  if (endpoint.url.starts_with(unix_scheme) &&
      has_listener(endpoint.url.substr(unix_scheme.size())))
    return;
  docker::EngineApi engine(context.loop(), endpoint);
  context.await(engine.info());  // Its error says what was tried, and how to go without an engine.
}

bool remove_work(Context& context, store::RunStore& runs, const std::string& id) {
  const auto held = runs.hold(id);  // else the run may be resumed meanwhile
  const auto run = runs.find_run(id);
  if (!held || (run && run->id == id && run->status == RunStatus::running)) return true;
  try {
    core::remove_tree(engine::work_folder(runs, id));
    return true;
  } catch (const core::EnvironmentError& error) {
    context.note(std::string("note: ") + error.what());
    return false;
  }
}

std::vector<store::RunRecord> reap_stale_runs(Context& context, store::RunStore& runs,
                                              const std::string& resumed, const std::string& gone) {
  auto dead = runs.mark_dead_runs(gone);
  // Orchestrator, its cluster's context and namespace, and whose Jobs there.
  std::set<std::tuple<std::string, std::string, std::string, std::string>> places;
  for (const auto& run : dead) {
    const auto options =
        recorded_options(runs, run.id, context.options()).value_or(context.options());
    std::istringstream names(run.orchestrator);  // `local, kubernetes`
    const auto detached = detached::detached_of(runs, run.id);
    for (std::string name; std::getline(names >> std::ws, name, ',');)
      places.emplace(name, options.context, options.name_space, detached ? detached->owner : "");
    if (run.id != resumed) remove_work(context, runs, run.id);
  }
  for (const auto& [name, cluster, name_space, owner] : places) {
    try {
      const auto place = make_orchestrator(
          context, name,
          {.state = runs.folder(), .context = cluster, .name_space = name_space, .owner = owner});
      const bool can_join = place->capabilities().outlives_driver;
      context.await(place->remove_orphans([&](const std::string& id) {
        if (id == resumed) return can_join;
        const auto run = runs.find_run(id);
        return run && run->status == RunStatus::running;
      }));
    } catch (const core::EnvironmentError& error) {
      context.note(std::string("note: cannot remove what an interrupted run has left: ") +
                   error.what() + "; `pipe clean --containers` does it later");
    }
  }
  return dead;
}

std::optional<Options> recorded_options(store::RunStore& runs, const std::string& run,
                                        Options caller) {
  auto recorded = detached::invocation_of(runs, run);
  if (!recorded) return std::nullopt;
  if (caller.jobs > 0) recorded->jobs = caller.jobs;
  static_cast<detached::Invocation&>(caller) = std::move(*recorded);
  caller.state = runs.folder();
  return caller;
}

kubernetes::AccessOptions cluster_of(const Options& options) {
  return {.context = options.context, .name_space = options.name_space};
}

store::RunRecord find_run(const Context& context, detached::Drivers& drivers,
                          store::RunStore& runs) {
  auto run = context.find_run(runs);
  drivers.update(run);
  return run;
}

}  // namespace pipeline::cli
