// `pipe plan`: what a run would do with each step, and why.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "driver/origin.hpp"
#include "driver/plan.hpp"
#include "model/instance.hpp"

namespace pipeline::cli {
namespace {

using engine::StepPlan;

const char* word_of(StepPlan::Action action) {
  switch (action) {
    case StepPlan::Action::run: return "run";
    case StepPlan::Action::reuse: return "reuse";
    case StepPlan::Action::skip: return "skip";
    case StepPlan::Action::unknown: return "unknown";
    case StepPlan::Action::depends: break;
  }
  return "depends";
}

Colour colour_of_action(StepPlan::Action action) {
  return action == StepPlan::Action::run     ? Colour::yellow
         : action == StepPlan::Action::reuse ? Colour::green
         : action == StepPlan::Action::skip  ? Colour::none
                                             : Colour::blue;
}

/// Returns a step's code files with their reasons, and the parts of its key.
std::string details(const StepPlan& plan, const spec::CodeSet& code, const Paint& paint) {
  std::string text = "\n" + paint(Colour::bold, plan.step) + "\n  code:\n";
  Table code_files;
  code_files.add({"", "FILE", "BECAUSE"});
  for (const auto& file : code.files)
    code_files.add({"  ", for_terminal(file.relative_path), for_terminal(file.reason)});
  text += code_files.empty() ? "    none\n" : code_files.render(paint);
  text += "  key:\n";
  Table parts;
  parts.add({"", "PART", "VALUE"});
  for (const auto& part : plan.key)
    parts.add({"  ", part.name, clip(shorten_digests(part.value), 100)});
  return text + parts.render(paint);
}

/// A row of the table: one step, or all instances of a step with the same decision.
struct PlanRow {
  const StepPlan* plan;
  std::vector<std::string> reasons;
  std::size_t steps = 1;
};

std::vector<PlanRow> rows_of(const std::vector<StepPlan>& plans) {
  std::vector<PlanRow> rows;
  std::map<std::tuple<std::string_view, StepPlan::Action, std::vector<std::string>>, std::size_t>
      positions;
  for (const auto& plan : plans) {
    PlanRow row{&plan, *plan.changes};
    if (plan.action == StepPlan::Action::reuse)
      row.reasons = {"of " + driver::origin_of(*plan.reused_from)};
    row.reasons.insert(row.reasons.end(), plan.notes.begin(), plan.notes.end());
    const auto base = model::base_name(plan.step);
    if (base != plan.step) {
      const auto [known, is_new] =
          positions.emplace(std::tuple(base, plan.action, row.reasons), rows.size());
      if (!is_new) {
        ++rows[known->second].steps;
        continue;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Table actions_table(const PipelineSpec& pipeline, const std::vector<StepPlan>& plans) {
  std::map<std::string, std::size_t> instances;  // Counted by step with a matrix or rounds.
  for (const auto& step : pipeline.steps)
    if (step.instance && !step.repeat) ++instances[*step.instance->of];
  for (const auto& plan : plans)
    if ((plan.spec->matrix || plan.spec->repeat) && plan.spec->name != plan.step)
      ++instances[std::string(model::base_name(plan.step))];
  Table table;
  table.add({"STEP", "ACTION", "WHY"});
  for (const auto& [plan, reasons, steps] : rows_of(plans)) {
    std::string name = plan->step;
    if (steps > 1) {
      const std::string base(model::base_name(name));
      const auto all = std::max(steps, instances[base]);
      name = base + (steps == all ? "[*]" : "[...]") + " (" + std::to_string(steps) + " of " +
             std::to_string(all) + ")";
    }
    for (std::size_t i = 0; i < std::max<std::size_t>(1, reasons.size()); ++i)
      table.add({i ? "" : name,
                 {i ? "" : word_of(plan->action), colour_of_action(plan->action)},
                 i < reasons.size() ? shorten_digests(for_terminal(reasons[i])) : ""});
  }
  return table;
}

/// The environments to build, each with the reason of the build and the steps.
using Builds = std::map<std::string, std::pair<std::string, std::vector<std::string>>>;

Builds builds_of(const std::vector<StepPlan>& plans) {
  Builds builds;
  for (const auto& plan : plans) {
    if (plan.build.empty() || plan.action == StepPlan::Action::reuse ||
        plan.action == StepPlan::Action::skip)
      continue;
    auto& [reason, steps] = builds[*plan.environment];
    reason = *plan.build;
    steps.push_back(plan.step);
  }
  return builds;
}

Table builds_table(const Builds& builds) {
  Table table;
  table.add({"ENVIRONMENT", "TO DO", "FOR"});
  for (const auto& [environment, build] : builds)
    table.add({shorten_digests(for_terminal(environment)),
               shorten_digests(for_terminal(build.first)),
               clip(core::joined(build.second, ", "), 60)});
  return table;
}

std::string totals_text(const std::string& pipeline, const std::vector<StepPlan>& plans,
                        std::size_t builds) {
  const auto count_of = [&](StepPlan::Action action) {
    return static_cast<std::size_t>(std::ranges::count(plans, action, &StepPlan::action));
  };
  auto text = pipeline + ": " + std::to_string(count_of(StepPlan::Action::run)) + " to run, " +
              std::to_string(count_of(StepPlan::Action::reuse)) + " to reuse";
  if (const auto skipped = count_of(StepPlan::Action::skip))
    text += ", " + std::to_string(skipped) + " to skip";
  if (const auto open = count_of(StepPlan::Action::depends))
    text += ", " + std::to_string(open) + " depending on what is not known yet";
  if (const auto unexpanded = count_of(StepPlan::Action::unknown))
    text += ", " + counted(unexpanded, "step") + " whose instances are not known yet";
  return text + ", " + counted(builds, "environment") + " to make\n";
}

std::string render(const Context& context, driver::Session& session,
                   const std::vector<StepPlan>& plans) {
  const auto& paint = context.paint();
  auto text = actions_table(session.pipeline(), plans).render(paint);
  const auto builds = builds_of(plans);
  if (!builds.empty()) text += "\n" + builds_table(builds).render(paint);
  if (context.options().verbose)
    for (const auto& plan : plans)
      text += details(plan, session.source.resolver().code_of(*plan.spec), paint);
  return text + "\n" + totals_text(session.pipeline().name, plans, builds.size());
}

nlohmann::json to_json(driver::Session& session, const std::vector<StepPlan>& plans) {
  nlohmann::json document{{"pipeline", session.pipeline().name},
                          {"orchestrator", session.workspace.options().orchestrator},
                          {"steps", nlohmann::json::array()}};
  for (const auto& plan : plans) {
    nlohmann::json entry{{"step", plan.step},
                         {"action", word_of(plan.action)},
                         {"changes", *plan.changes},
                         {"environment", *plan.environment}};
    if (!plan.notes.empty()) entry["notes"] = plan.notes;
    if (!plan.reused_from.empty()) entry["reused_from"] = *plan.reused_from;
    if (!plan.build.empty()) entry["build"] = *plan.build;
    for (const auto& part : plan.key)
      entry["key"].push_back({{"name", part.name}, {"value", part.value}});
    for (const auto& file : session.source.resolver().code_of(*plan.spec).files)
      entry["code"].push_back({{"path", file.relative_path}, {"reason", file.reason}});
    document["steps"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace

core::ExitCode plan_command(Context& given) {
  // A plan leaves no files: if there is no state folder yet, a temporary one is used.
  std::optional<core::TemporaryFolder> no_state;
  auto chosen = given.options();
  std::error_code error;
  if (!std::filesystem::exists(given.state_beside(given.pipeline_file()), error))
    chosen.state = no_state.emplace().path();
  Context context(std::move(chosen));
  driver::Session session(context);
  const bool is_json = context.options().json;
  const auto plan = driver::plan_run(
      session,
      [&](std::string_view text) {
        if (!is_json) context.note(std::string(text) + "\n");
      },
      is_json || context.options().verbose);
  if (is_json) {
    auto json = to_json(session, plan.steps);
    json["warnings"] = driver::warnings_json(plan.warnings, session.pipeline());
    context.print_json(json);
  } else {
    context.print(render(context, session, plan.steps));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
