#include "cli/summary.hpp"

#include "cli/context.hpp"
#include "cli/failure_text.hpp"
#include "cli/progress.hpp"
#include "core/quantity.hpp"
#include "driver/origin.hpp"

namespace pipeline::cli {
namespace {

std::vector<model::StepFailure> failures_of(const driver::RunModel& model) {
  std::vector<model::StepFailure> failures;
  for (const auto& step : model.steps)
    if (step.status == StepStatus::failed && step.failure)
      failures.push_back({step.name, *step.failure});
  return failures;
}

/// Formats `train[*]  failed  4.2s    97/100, 3 failed`.
void add_group(const driver::GroupView& group, Table& table) {
  StepStatus status =
      group.count(StepStatus::cached) == group.total ? StepStatus::cached : StepStatus::succeeded;
  for (const auto worse : {StepStatus::skipped, StepStatus::cancelled, StepStatus::failed})
    if (group.count(worse)) status = worse;
  const bool ran = group.began != driver::SteadyTime{};
  table.add({group.name + "[*]", status_cell(status),
             ran ? core::format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(
                       group.ended - group.began))
                 : "",
             "", group.text()});
}

/// Returns a row for each step; in a large run, only for those that did not succeed.
std::string steps_table(const driver::RunModel& model, const Paint& paint) {
  std::size_t rows = model.total;
  for (const auto& group : model.groups) rows -= group.total - 1;
  const bool is_large = rows > many_steps;
  Table table;
  table.add({"STEP", "STATUS", "TIME", "ATTEMPTS", ""});
  std::size_t left_out = 0, shown = 0;
  std::vector<bool> listed(model.groups.size());
  for (const auto& step : model.steps) {
    if (step.group) {
      if (!listed[*step.group]) add_group(model.groups[*step.group], table);
      listed[*step.group] = true;
      continue;
    }
    const bool is_well = step.status == StepStatus::cached || step.status == StepStatus::succeeded;
    if (is_large && (is_well || shown == many_steps)) {
      left_out += !is_well;
      continue;
    }
    ++shown;
    const bool ran = step.attempts > 0;
    std::string remark;
    if (!step.reused_from.empty()) remark = "reused from " + driver::origin_of(step.reused_from);
    if (!step.reason.empty())
      remark = clip(*step.reason, 100);
    else if (step.status != StepStatus::failed && step.failure)
      remark = clip(step.failure->message, 100);
    table.add({step.name, status_cell(step.status), ran ? core::format_duration(step.took) : "",
               ran ? std::to_string(step.attempts) : "", remark});
  }
  std::string text = table.empty() ? "" : table.render(paint);
  if (left_out) text += "and " + counted(left_out, "more step") + "\n";
  return text;
}

}  // namespace

Table::Cell status_cell(StepStatus status) {
  switch (status) {
    case StepStatus::succeeded: return {"succeeded", Colour::green};
    case StepStatus::cached: return {"reused", Colour::cyan};
    case StepStatus::failed: return {"failed", Colour::red};
    case StepStatus::skipped:
    case StepStatus::cancelled: return {std::string(to_string(status)), Colour::yellow};
    default: return std::string(to_string(status));
  }
}

Colour colour_of(RunStatus status) {
  switch (status) {
    case RunStatus::succeeded: return Colour::green;
    case RunStatus::failed: return Colour::red;
    case RunStatus::interrupted: return Colour::yellow;
    default: return Colour::none;
  }
}

std::string render_summary(const Summary& summary, const Paint& paint) {
  const auto& [model, outcome, results, copy_command, program, state] = summary;
  std::string text = steps_table(model, paint);
  if (!text.empty()) text.insert(0, "\n");
  const RunCommands commands{program, outcome.run, state};
  text += render_failures(failures_of(model), commands, paint);

  std::string counts;
  const auto add = [&](std::size_t count, const char* what) {
    if (count) counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(outcome.succeeded, "succeeded");
  add(outcome.cached, "reused");
  add(outcome.failed, "failed");
  add(outcome.skipped, "skipped");
  add(outcome.cancelled, "cancelled");
  text += "\n" + paint(Colour::bold, model.pipeline) + " " +
          paint(colour_of(outcome.status), to_string(outcome.status));
  if (model.finished) text += " in " + core::format_duration(model.finished->took);
  text += ": " + counts + "  (run " + outcome.run + ")\n";
  if (outcome.lacks_copies)
    text += "Not all outputs were copied to their `publish_to`: the notes above say why.\n";

  if (!results.empty()) {
    Table table;
    table.add({"RESULT", "SIZE", "PATH"});
    for (const auto& result : results)
      table.add({result.name, core::format_bytes(result.bytes), shown_path(result.path)});
    text += table.render(paint);
  }
  if (!copy_command.empty()) text += "Copy one out: " + copy_command + "\n";
  if (outcome.succeeded + outcome.failed > 0)  // There is something new to look at.
    text += "Report: " + commands.line("report") + "\n";
  if (outcome.status == RunStatus::interrupted)
    text += "Continue it: " + commands.line("resume") + "\n";
  return text;
}

void show_summary(const Context& context, const driver::RunModel& model,
                  const driver::RunEnd& end) {
  if (context.options().json) return context.write(driver::summary_json(end).dump() + "\n");
  Summary summary{
      model, end.outcome, end.results, {}, context.options().name, context.state_option(end.state)};
  if (!summary.results.empty())
    summary.copy_command = summary.program + " artifacts " + summary.outcome.run + " " +
                           summary.results.back().name + " --copy DEST" + summary.state;
  context.print(render_summary(summary, context.paint()));
}

}  // namespace pipeline::cli
