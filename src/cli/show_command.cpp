// `pipe show`: a run or a step with its attempts, times and failures.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/attempt_tables.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure_text.hpp"
#include "cli/page_assets.hpp"
#include "cli/progress.hpp"
#include "cli/run_records.hpp"
#include "cli/summary.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "driver/failed_outputs.hpp"
#include "driver/origin.hpp"
#include "driver/recorded_steps.hpp"
#include "driver/run_model.hpp"
#include "driver/session.hpp"
#include "model/instance.hpp"
#include "report/rank_entries.hpp"
#include "report/report.hpp"
#include "report/run_values.hpp"
#include "store/failures.hpp"
#include "store/questions.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Steps with so many instances that they are shown as one line for each status.
class InstanceGroups {
 public:
  explicit InstanceGroups(const std::vector<store::StepRecord>& steps) {
    for (const auto& step : steps)
      if (const auto base = model::base_name(step.name); base != step.name)
        ++groups_[base].instances;
    std::erase_if(groups_, [](const auto& entry) {
      return entry.second.instances <= driver::many_instances;
    });
    for (const auto& step : steps)
      if (auto* group = find(step)) ++group->by_status[step.status];
  }

  struct Group {
    std::size_t instances = 0;
    std::map<StepStatus, std::size_t> by_status;
    bool is_shown = false;
  };
  /// Returns null for a step that has a line of its own.
  Group* find(const store::StepRecord& step) {
    const auto found = groups_.find(model::base_name(step.name));
    return found == groups_.end() ? nullptr : &found->second;
  }
  bool empty() const { return groups_.empty(); }

 private:
  std::map<std::string_view, Group> groups_;
};

/// Returns the lines above the table of steps.
/// @param status as status_of() returns it
std::string heading(driver::Drivers& drivers, store::RunRecord run, const std::string& status,
                    const Paint& paint) {
  std::string text = paint(Colour::bold, "run " + run.id) + " of " + run.pipeline + ": " +
                     paint(colour_of(run.status), status);
  if (run.status != RunStatus::running && run.ended != WallTime{})
    text += " in " + core::format_duration(run.took);
  if (status == "running") text += " for " + duration_of(run);
  text += "\n";
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string("  ") + name + for_terminal(value) + "\n";
  };
  line("file:         ", run.file);
  line("orchestrator: ", run.orchestrator);
  if (run.driver.has_lease() && run.status == RunStatus::running)
    line("driver:       ", drivers.describe(run));
  line("started:      ", core::format_time(run.started));
  line("tags:         ", report::tags_of(run));
  line("note:         ", run.note);
  if (run.parameters != "{}") line("parameters:   ", run.parameters);
  if (!run.git_commit.empty())
    line("git commit:   ",
         run.git_commit + (run.git_dirty ? " and changes that are not committed" : ""));
  return text + "\n";
}

/// Replaces the attempt's memory by that of one node, because the limit is that of each node.
void count_memory_of_node(store::RunStore& store, store::AttemptRecord& attempt) {
  attempt.usage.peak_memory = report::memory_of_node(attempt, store.attempts().tasks(attempt));
}

/// Returns the duration of a step or an attempt; empty if it ended with its killed driver.
template <class Record>
std::string time_of(const Record& record, bool is_running) {
  return is_running || record.ended != WallTime{} ? duration_of(record) : "";
}

using UsageOf = std::function<UsageCells(const store::StepRecord&)>;

/// Returns a row for each step, and for each status of a step with many instances.
/// @param is_running true if the run is in progress
Table steps_table(const std::vector<store::StepRecord>& steps, InstanceGroups& groups,
                  bool is_running, const UsageOf& usage_of) {
  Table table;
  table.add({"STEP", "STATUS", "TIME", "CPU", "MEMORY", "ATTEMPTS", "IMAGE", ""});
  for (const auto& step : steps) {
    if (auto* const group = groups.find(step)) {
      if (std::exchange(group->is_shown, true)) continue;
      for (const auto& [status, count] : group->by_status)
        table.add({std::string(model::base_name(step.name)) + "[*]", status_cell(status), "", "",
                   "", "", "", std::to_string(count) + " of " + std::to_string(group->instances)});
      continue;
    }
    const auto used = usage_of(step);
    const auto took = time_of(step, is_running && step.status == StepStatus::running);
    table.add({step.name, status_cell(step.status), step.attempts ? took : "", used.cpu,
               used.memory, step.attempts ? std::to_string(step.attempts) : "",
               clip(shorten_digests(step.image), 40),
               step.reused_from.empty() ? clip(step.message, 100)
                                        : "of " + driver::origin_of(step.reused_from)});
  }
  return table;
}

/// Lists the attempts of the steps that failed or were retried.
/// @param is_running true if the run is in progress
/// @param is_large   true if not all steps may be listed
std::string attempts_text(store::RunStore& store, const std::vector<store::StepRecord>& steps,
                          bool is_running, bool is_large, const Paint& paint) {
  Table table;
  table.add({"ATTEMPT", "TIME", "EXIT CODE", "LIMIT", ""});
  std::size_t count = 0;
  for (const auto& step : steps) {
    if (step.attempts <= 1 && step.status != StepStatus::failed) continue;
    if (is_large && ++count > many_steps) continue;
    const auto attempts = store.attempts().list(step.run, step.name);
    for (const auto& attempt : attempts)
      table.add({step.name + " " + std::to_string(attempt.number),
                 time_of(attempt, is_running && step.status == StepStatus::running &&
                                      &attempt == &attempts.back()),
                 attempt.exit_code ? std::to_string(*attempt.exit_code) : "",
                 attempt.usage.memory_limit ? core::format_bytes(*attempt.usage.memory_limit) : "",
                 clip(attempt.message, 100)});
  }
  std::string text;
  if (!table.empty()) text += "\n" + table.render(paint);
  if (count > many_steps) text += "and " + counted(count - many_steps, "more step") + "\n";
  return text;
}

struct GpuCells {
  std::string mean, peak, memory;
};

GpuCells gpu_cells(const core::GpuUsage* used) {
  if (!used) return {};
  const auto percent = [](const std::optional<double>& share) {
    return share ? std::to_string(std::lround(*share * 100)) + " %" : std::string();
  };
  return {percent(used->mean_load), percent(used->peak_load),
          core::format_bytes(used->peak_memory) + " of " + core::format_bytes(used->memory)};
}

std::string gpus_text(store::RunStore& store, const std::vector<store::StepRecord>& steps,
                      const Paint& paint) {
  Table table;
  table.add({"ATTEMPT", "GPU", "MODEL", "BUSY", "AT MOST", "MEMORY", "UUID"});
  for (const auto& step : steps) {
    if (step.attempts == 0) continue;
    for (const auto& attempt : store.attempts().list(step.run, step.name))
      for (const auto& gpu : attempt.gpus) {
        const auto used = gpu_cells(attempt.usage.of_gpu(gpu.uuid));
        table.add({step.name + " " + std::to_string(attempt.number), device_text(gpu), gpu.model,
                   used.mean, used.peak, used.memory, gpu.uuid});
      }
  }
  return table.empty() ? "" : "\n" + table.render(paint);
}

/// Lists the last attempt of each step that has been started, without steps with many instances.
std::string wide_text(store::RunStore& store, const std::vector<store::StepRecord>& steps,
                      InstanceGroups& groups, const Paint& paint) {
  std::vector<NamedAttempt> rows;
  for (const auto& step : steps) {
    if (step.attempts == 0 || groups.find(step)) continue;
    auto attempts = store.attempts().list(step.run, step.name);
    if (attempts.empty()) continue;
    count_memory_of_node(store, attempts.back());
    rows.push_back({step.name, std::move(attempts.back())});
  }
  if (rows.empty()) return {};
  Table stored;
  stored.add({"STEP", "OUTPUTS"});
  for (const auto& [name, attempt] : rows)
    if (!attempt.stored.empty()) stored.add({name, for_terminal(attempt.stored)});
  return "\n" + attempts_table("STEP", rows, {.phases = true, .usage = true}).render(paint) +
         (stored.empty() ? "" : "\n" + stored.render(paint));
}

/// Shows one step with all of its attempts: how they ended, their phases and usage. Each table fits
/// in 80 columns.
/// @param is_running true if the run is in progress
std::string step_text(store::RunStore& store, const store::StepRecord& step, bool is_running,
                      const RunCommands& commands, const Paint& paint) {
  auto text = paint(Colour::bold, "step " + step.name) + " of run " + step.run + ": ";
  const auto status = status_cell(step.status);
  text += paint(status.colour, status.text);
  if (!step.reused_from.empty()) text += " from " + driver::origin_of(step.reused_from);
  text += "\n";
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string("  ") + name + for_terminal(value) + "\n";
  };
  std::vector<NamedAttempt> rows;
  std::set<std::string> images{step.image};
  for (auto& attempt : store.attempts().list(step.run, step.name)) {
    images.insert(attempt.image);
    count_memory_of_node(store, attempt);
    auto number = std::to_string(attempt.number);
    rows.push_back({std::move(number), std::move(attempt)});
  }
  for (const auto& image : images) line("image:      ", image);
  line("key:        ", step.key);
  if (const auto all = store::questions_of(store, step.run); all.contains(step.name)) {
    const auto& asked = all.at(step.name);
    line("asked:      ", asked.text);
    const auto answered = asked.answer + " by " + asked.who + " at " +
                          core::format_time(asked.answered) +
                          (asked.note.empty() ? "" : ": " + asked.note);
    line("answer:     ", asked.answer.empty() ? "none yet" : core::printable(answered));
  }
  if (step.parameters != "{}") line("parameters: ", step.parameters);
  for (const auto& output : step.outputs)
    line("output:     ", output.name + ", " + core::format_bytes(output.bytes));
  text += render_failures(store::failures_of({step}), commands, paint);
  if (rows.empty() && step.status == StepStatus::failed) return text;
  if (rows.empty()) return text + "\n" + (step.message.empty() ? "" : step.message + "\n");
  return text + attempts_text(store, {step}, is_running, /*is_large=*/false, paint) + "\n" +
         attempts_table("ATTEMPT", rows, {.phases = true}).render(paint) + "\n" +
         attempts_table("ATTEMPT", rows, {.usage = true}).render(paint) +
         ranks_text(store.attempts().tasks(rows.back().attempt),
                    commands.line("show", step.name + " --output json"), paint) +
         gpus_text(store, {step}, paint);
}

RunCommands run_commands(const Context& context, store::RunStore& store,
                         const store::RunRecord& run) {
  return {context.options().name, run.id, context.state_option(store.folder())};
}

/// Shows a whole run.
/// @param status as status_of() returns it
std::string show_text(const Context& context, driver::Drivers& drivers, store::RunStore& store,
                      const store::RunRecord& run, const std::string& status) {
  const auto& paint = context.paint();
  const auto commands = run_commands(context, store, run);
  const bool is_running = status == "running";
  const auto steps = store.runs().steps(run.id);
  InstanceGroups groups(steps);
  const auto usage_of = [&](const store::StepRecord& step) {
    if (step.attempts == 0) return UsageCells{};
    auto attempts = store.attempts().list(step.run, step.name);
    if (attempts.empty()) return UsageCells{};
    count_memory_of_node(store, attempts.back());
    return usage_cells(attempts.back().usage);
  };
  auto text = heading(drivers, run, status, paint) +
              steps_table(steps, groups, is_running, usage_of).render(paint) +
              attempts_text(store, steps, is_running, !groups.empty(), paint);
  if (groups.empty()) text += gpus_text(store, steps, paint);
  if (context.options().show.wide) text += wide_text(store, steps, groups, paint);
  text += render_failures(store::failures_of(steps), commands, paint);
  if (!driver::failed_outputs(store, run.id, steps).empty())
    text += "\noutputs of failed attempts are kept: " + commands.line("artifacts") + "\n";
  return text;
}

/// Returns the report of a run as an HTML element for another page: a frame whose script cannot
/// reach that page.
std::string show_html(Context& context, store::RunStore& store, const store::RunRecord& run) {
  constexpr std::size_t max_logs = 200'000, max_pictures = 500'000, max_points = 10'000;
  auto limits = report::limits_for(run.steps);
  limits.logs = std::min(limits.logs, max_logs);
  limits.pictures = std::min(limits.pictures, max_pictures);
  limits.curves.all_points = std::min(limits.curves.all_points, max_points);
  const auto data = report::report_data(store, context.artifacts(), run, limits);
  return report::framed_report(report_page(data), "Run " + run.id + " of " + run.pipeline);
}

}  // namespace

core::ExitCode show_command(Context& context) {
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  auto run = driver::find_run(context, context.options().run, drivers, store);
  const auto status = status_of(drivers, run);
  const auto& options = context.options();
  if (options.show.html) {
    if (!options.step.empty())
      throw core::InputError("--output html shows a whole run", "leave out " + options.step);
    context.write(show_html(context, store, run));
    return core::ExitCode::ok;
  }
  if (!options.step.empty()) {
    const auto step = driver::recorded_step(store, run, options.step);
    if (options.json)
      context.print_json(step_json(context, store, outputs_of(context, store, run), step));
    else
      context.print(step_text(store, step, status == "running", run_commands(context, store, run),
                              context.paint()));
    return core::ExitCode::ok;
  }
  if (!options.json) {
    context.print(show_text(context, drivers, store, run, status));
    return core::ExitCode::ok;
  }
  auto entry = run_json(run);
  entry["status"] = status;
  entry["metrics"] = json::array();
  for (const auto& metric : store.metrics().list(run.id))
    entry["metrics"].push_back(metric_json(metric));
  entry["steps"] = json::array();
  const auto outputs = outputs_of(context, store, run);
  for (const auto& step : store.runs().steps(run.id))
    entry["steps"].push_back(step_json(context, store, outputs, step));
  context.print_json(entry);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
