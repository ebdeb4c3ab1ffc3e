#include <algorithm>
#include <future>
#include <set>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/session.hpp"
#include "cli/summary.hpp"
#include "core/identifier.hpp"
#include "vcs/repository.hpp"

namespace pipeline::cli {
namespace {

/// Outputs that no step takes, of the steps that have succeeded now or before.
std::vector<Result> results_of(Session& session) {
  constexpr std::size_t most = 12;
  std::set<std::pair<std::string_view, std::string_view>> taken;
  std::set<std::string_view> names;
  for (const auto& step : session.pipeline.steps)
    for (const auto& input : step.inputs) taken.emplace(input.step, input.output);
  for (const auto& step : session.pipeline.steps)
    for (const auto& output : step.outputs)
      if (!taken.contains({step.name, output.name})) names.insert(step.name);
  std::vector<Result> results;
  if (names.empty()) return results;
  for (const auto& step : session.runs.steps(session.run_id)) {
    if (!names.contains(step.name)) continue;
    for (const auto& output : step.outputs)
      if (results.size() < most && !taken.contains({step.name, output.name}))
        results.push_back({step.name + "." + output.name, shown_path(session.context.artifacts().path(output.digest)), output.bytes});
  }
  return results;
}

std::string copy_command(Session& session, const std::vector<Result>& results) {
  if (results.empty()) return {};
  std::string command = "pipe artifacts " + session.run_id + " " + results.front().name + " --copy DEST";
  if (const auto found = session.context.existing_state(); !found || std::filesystem::absolute(*found) != std::filesystem::absolute(session.runs.folder()))
    command += " --state " + shell_quote(shown_path(session.runs.folder()));
  return command;
}

nlohmann::json summary_json(const Summary& summary) {
  const auto& outcome = summary.outcome;
  nlohmann::json json{{"event", "summary"},         {"run", outcome.run},         {"status", to_string(outcome.status)},
                      {"succeeded", outcome.succeeded}, {"reused", outcome.cached},   {"failed", outcome.failed},
                      {"skipped", outcome.skipped},     {"cancelled", outcome.cancelled}, {"exit_code", static_cast<int>(exit_code_of(outcome))},
                      {"results", nlohmann::json::array()}};
  for (const auto& result : summary.results) json["results"].push_back({{"output", result.name}, {"path", result.path}, {"bytes", result.bytes}});
  return json;
}

}  // namespace

ExitCode run_command(Context& context) {
  // The state of the source takes libgit2 some milliseconds: asked for beside the rest.
  auto source = std::async(std::launch::async, [folder = context.pipeline_file().parent_path()] { return vcs::source_state(folder); });
  Session session(context);
  require_engine(context);
  bury_dead_runs(context, session.runs);

  engine::RunOptions options{.jobs = context.options().jobs, .use_cache = !context.options().no_cache, .only_step = context.options().step, .run_id = session.run_id};
  if (const auto state = source.get()) {
    options.git_commit = state->commit;
    options.git_dirty = state->dirty;
  }
  Display display(context);
  const auto outcome = context.await(engine::run(session.pipeline, *session.orchestrator, session.runs, context.artifacts(), context.stats(), session.code,
                                                 display.progress(), display.cancel(), options));
  display.close();
  Summary summary{display.progress().model(), outcome, results_of(session), {}};
  summary.copy_command = copy_command(session, summary.results);
  if (context.options().json) {
    context.print(summary_json(summary).dump() + "\n");
  } else {
    context.print(render_summary(summary, context.paint()));
  }
  return exit_code_of(outcome);
}

}  // namespace pipeline::cli
