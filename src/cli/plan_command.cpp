#include <map>

#include "cli/commands.hpp"
#include "cli/session.hpp"

namespace pipeline::cli {
namespace {

using engine::StepPlan;

const char* word_of(StepPlan::Action action) {
  switch (action) {
    case StepPlan::Action::run: return "run";
    case StepPlan::Action::reuse: return "reuse";
    case StepPlan::Action::depends: break;
  }
  return "depends";
}

Colour colour_of(StepPlan::Action action) {
  return action == StepPlan::Action::run ? Colour::yellow : action == StepPlan::Action::reuse ? Colour::green : Colour::blue;
}

std::string details(const StepPlan& plan, const spec::CodeSet& code, const Paint& paint) {
  std::string text = "\n" + paint(Colour::bold, plan.step) + "\n  code:\n";
  Table files;
  files.add({"", "FILE", "BECAUSE"});
  for (const auto& file : code.files) files.add({"  ", for_terminal(file.relative_path, false), for_terminal(file.reason, false)});
  text += files.empty() ? "    none\n" : files.render(paint);
  text += "  key:\n";
  Table parts;
  parts.add({"", "PART", "VALUE"});
  for (const auto& part : plan.key) parts.add({"  ", part.name, clip(shorten_digests(part.value), 100)});
  return text + parts.render(paint);
}

std::string render(Session& session, const std::vector<StepPlan>& plans) {
  const auto& paint = session.context.paint();
  Table table;
  table.add({"STEP", "ACTION", "WHY"});
  std::map<std::string, std::pair<std::string, std::vector<std::string>>> builds;  // By environment: what will be done, for which steps.
  std::size_t counts[3] = {};
  for (const auto& plan : plans) {
    ++counts[static_cast<std::size_t>(plan.action)];
    std::vector<std::string> reasons = plan.changes;
    if (plan.action == StepPlan::Action::reuse) reasons = {"of run " + plan.reused_from};
    for (std::size_t i = 0; i < std::max<std::size_t>(1, reasons.size()); ++i)
      table.add({i ? "" : plan.step,
                 {i ? "" : word_of(plan.action), colour_of(plan.action)},
                 i < reasons.size() ? shorten_digests(for_terminal(reasons[i], false)) : ""});
    if (!plan.build.empty() && plan.action != StepPlan::Action::reuse) {
      auto& [reason, steps] = builds[plan.environment];
      reason = plan.build;
      steps.push_back(plan.step);
    }
  }
  std::string text = table.render(paint);
  if (!builds.empty()) {
    Table environments;
    environments.add({"ENVIRONMENT", "TO DO", "FOR"});
    for (const auto& [environment, build] : builds) {
      std::string steps;
      for (const auto& step : build.second) steps += (steps.empty() ? "" : ", ") + step;
      environments.add({shorten_digests(for_terminal(environment, false)), shorten_digests(for_terminal(build.first, false)), clip(steps, 60)});
    }
    text += "\n" + environments.render(paint);
  }
  if (session.context.options().verbose)
    for (const auto& plan : plans)
      for (const auto& step : session.pipeline().steps)
        if (step.name == plan.step) text += details(plan, session.resolver().code_of(step), paint);
  text += "\n" + session.pipeline().name + ": " + std::to_string(counts[0]) + " to run, " + std::to_string(counts[1]) + " to reuse";
  if (counts[2]) text += ", " + std::to_string(counts[2]) + " depending on what those before give";
  return text + ", " + counted(builds.size(), "environment") + " to make\n";
}

nlohmann::json to_json(Session& session, const std::vector<StepPlan>& plans) {
  nlohmann::json json{
      {"pipeline", session.pipeline().name}, {"orchestrator", session.context.options().orchestrator}, {"steps", nlohmann::json::array()}};
  for (const auto& plan : plans) {
    nlohmann::json entry{{"step", plan.step}, {"action", word_of(plan.action)}, {"changes", plan.changes}, {"environment", plan.environment}};
    if (!plan.reused_from.empty()) entry["reused_from"] = plan.reused_from;
    if (!plan.build.empty()) entry["build"] = plan.build;
    for (const auto& part : plan.key) entry["key"].push_back({{"name", part.name}, {"value", part.value}});
    for (const auto& step : session.pipeline().steps)
      if (step.name == plan.step)
        for (const auto& file : session.resolver().code_of(step).files)
          entry["code"].push_back({{"path", file.relative_path}, {"reason", file.reason}});
    json["steps"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

ExitCode plan_command(Context& context) {
  Session session(context);
  session.pipeline();  // What is wrong with the file comes before what is wrong with the machine.
  require_engine(context);
  const engine::RunOptions options{.use_cache = !context.options().no_cache, .only_step = context.options().step, .run_id = session.run_id};
  const auto plans = context.await(
      engine::plan(session.pipeline(), *session.orchestrator, session.runs, context.artifacts(), context.stats(), session.code(), options));
  if (context.options().json) {
    context.print_json(to_json(session, plans));
  } else {
    context.print(render(session, plans));
  }
  return ExitCode::ok;
}

}  // namespace pipeline::cli
