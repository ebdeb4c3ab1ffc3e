#include "cli/session.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::cli {
namespace {

std::string new_run_id() {
  using namespace std::chrono;
  return make_run_id(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(), std::random_device{}());
}

/// Whether somebody listens on the socket; says nothing of whether he answers.
bool someone_listens(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Session::Session(Context& c)
    : context(c),
      run_id(new_run_id()),
      pipeline(c.load_pipeline()),
      runs(c.runs(c.state_beside(pipeline.file))),
      resolver(pipeline),
      code(make_code_provider()),
      orchestrator(make_orchestrator(c, c.options().orchestrator,
                                     {.root = pipeline.root, .state = runs.folder(), .template_dir = c.options().template_dir, .run_id = run_id})) {}

engine::CodeProvider Session::make_code_provider() {
  return {.files = [this](const StepSpec& step) -> const std::vector<store::TreeEntry>& {
            const auto& set = resolver.code_of(step);
            const auto [tree, is_new] = trees_.try_emplace(&set);
            if (is_new)
              for (const auto& file : set.files) tree->second.push_back({file.relative_path, file.source});
            return tree->second;
          },
          .missing_file = [this](const StepSpec& step, std::string_view output) { return resolver.missing_file(step, output); }};
}

std::vector<const StepSpec*> Session::selected_steps() const {
  const std::string& only = context.options().step;
  std::set<std::string> wanted;
  std::vector<std::string> names;
  for (const auto& step : pipeline.steps) names.push_back(step.name);
  if (!only.empty()) {
    if (std::ranges::find(names, only) == names.end()) throw InputError("there is no step '" + only + "' in pipeline '" + pipeline.name + "'", did_you_mean(only, names));
    for (std::vector<std::string> open{only}; !open.empty();) {
      const auto step = std::ranges::find(pipeline.steps, open.back(), &StepSpec::name);
      open.pop_back();
      if (!wanted.insert(step->name).second) continue;
      for (const auto& input : step->inputs) open.push_back(input.step);
      open.insert(open.end(), step->after.begin(), step->after.end());
    }
  }
  std::vector<const StepSpec*> selected;
  for (const auto& step : pipeline.steps)
    if (only.empty() || wanted.contains(step.name)) selected.push_back(&step);
  return selected;
}

std::unique_ptr<Orchestrator> make_orchestrator(Context& context, const std::string& name, OrchestratorOptions options) {
  return name == "local" ? make_local_orchestrator(context.loop(), std::move(options)) : make_docker_orchestrator(context.loop(), std::move(options));
}

void require_engine(Context& context) {
  if (context.options().orchestrator != "docker") return;
  const auto endpoint = docker::find_endpoint();
  constexpr std::string_view unix_scheme = "unix://";
  if (endpoint.url.starts_with(unix_scheme) && someone_listens(endpoint.url.substr(unix_scheme.size()))) return;
  docker::EngineApi engine(context.loop(), endpoint);
  try {
    context.await(engine.info());
  } catch (const EnvironmentError& error) {
    auto advice = error.advice();
    advice.push_back("without an engine: `--orchestrator local` runs the steps as processes of this machine");
    throw EnvironmentError(error.what(), std::move(advice));
  }
}

std::vector<store::RunRecord> bury_dead_runs(Context& context, store::RunStore& runs) {
  auto dead = runs.mark_dead_runs();
  std::set<std::string> orchestrators;
  for (const auto& run : dead) {
    orchestrators.insert(run.orchestrator);
    std::error_code ignored;
    std::filesystem::remove_all(engine::work_folder(runs, run.id), ignored);
  }
  for (const auto& name : orchestrators) {
    try {
      const auto place = make_orchestrator(context, name, {.state = runs.folder()});
      // A run that is not ours may belong to another state folder: it counts as alive.
      context.await(place->remove_orphans([&](const std::string& id) {
        const auto run = runs.find_run(id);
        return !run || run->status == RunStatus::running;
      }));
    } catch (const EnvironmentError& error) {
      context.note(std::string("note: cannot remove what an interrupted run has left: ") + error.what() + "; `pipe clean --containers` does it later");
    }
  }
  return dead;
}

}  // namespace pipeline::cli
