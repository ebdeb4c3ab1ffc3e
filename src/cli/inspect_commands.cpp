// Commands that look at runs: runs, show, artifacts.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/origin.hpp"
#include "cli/progress.hpp"
#include "cli/recorded_steps.hpp"
#include "cli/session.hpp"
#include "cli/summary.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/instance.hpp"
#include "core/quantity.hpp"
#include "detached/drivers.hpp"
#include "detached/invocation.hpp"
#include "engine/clock.hpp"
#include "remote_cache/run_outputs.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

json time_json(WallTime time) {
  return time == WallTime{} ? json() : json(core::format_time(time));
}

json run_json(const store::RunRecord& run) {
  json entry{{"id", run.id},
             {"pipeline", run.pipeline},
             {"orchestrator", run.orchestrator},
             {"file", run.file},
             {"status", to_string(run.status)},
             {"started", time_json(run.started)},
             {"ended", time_json(run.ended)},
             {"took_ms", run.took.count()},
             {"steps", run.steps},
             {"reused", run.cached},
             {"failed", run.failed},
             {"tags", run.tags},
             {"parameters", core::parse_json(run.parameters)}};
  if (const auto& lease = run.driver.lease; run.driver.is_elsewhere())
    entry["driver"] = {
        {"job", lease.name}, {"namespace", lease.name_space}, {"context", lease.context}};
  if (!run.git_commit.empty())
    entry["git"] = {{"commit", run.git_commit}, {"dirty", run.git_dirty}};
  return entry;
}

remote_cache::RunOutputs outputs_of(Context& context, store::RunStore& runs,
                                    const store::RunRecord& run) {
  const auto options = detached::invocation_of(runs, run.id);
  return {context.loop(), context.artifacts(), runs.folder(),
          options ? options->artifact_store : settings::ArtifactStoreSettings{}};
}

json output_json(Context& context, const remote_cache::RunOutputs& outputs, const std::string& step,
                 const store::OutputRecord& output) {
  json entry{{"output", step + "." + output.name},
             {"file_name", output.file_name},
             {"digest", output.digest.hex()},
             {"directory", output.is_directory},
             {"bytes", output.bytes}};
  if (outputs.is_here(output))
    entry["path"] = context.artifacts().path(output.digest).string();
  else
    entry["url"] = outputs.location(output);
  return entry;
}

json attempt_json(const store::RunStore& runs, const store::AttemptRecord& attempt) {
  json entry{{"number", attempt.number},
             {"started", time_json(attempt.started)},
             {"ended", time_json(attempt.ended)},
             {"took_ms", attempt.took.count()},
             {"log", runs.log_file(attempt.log).string()}};
  for (const auto& gpu : attempt.gpus)
    entry["gpus"].push_back({{"uuid", gpu.uuid}, {"index", gpu.index}, {"model", gpu.model}});
  if (attempt.exit_code) entry["exit_code"] = *attempt.exit_code;
  if (!attempt.failure_kind.empty())
    entry["failure"] = {{"kind", attempt.failure_kind}, {"message", attempt.message}};
  return entry;
}

json step_json(Context& context, store::RunStore& runs, const remote_cache::RunOutputs& outputs,
               const store::StepRecord& step) {
  json entry{{"step", step.name},
             {"status", to_string(step.status)},
             {"started", time_json(step.started)},
             {"ended", time_json(step.ended)},
             {"took_ms", step.took.count()},
             {"attempts", json::array()},
             {"outputs", json::array()},
             {"parameters", core::parse_json(step.parameters)}};
  if (!step.key.empty()) entry["key"] = step.key;
  if (!step.image.empty()) entry["image"] = step.image;
  if (!step.message.empty()) entry["message"] = step.message;
  if (!step.reused_from.empty()) entry["reused_from"] = step.reused_from;
  for (const auto& attempt : runs.attempts(step.run, step.name))
    entry["attempts"].push_back(attempt_json(runs, attempt));
  for (const auto& output : step.outputs)
    entry["outputs"].push_back(output_json(context, outputs, step.name, output));
  return entry;
}

/// What the record says, unless who drove the run is gone without a word.
std::string status_of(detached::Drivers& drivers, store::RunRecord& run) {
  if (run.status != RunStatus::running) return std::string(to_string(run.status));
  const auto life = drivers.liveness_of(run);
  if (run.status != RunStatus::running) return std::string(to_string(run.status));
  return life == detached::Drivers::Liveness::dead      ? "died"
         : life == detached::Drivers::Liveness::unknown ? "unknown"
                                                        : "running";
}

std::string tags_of(const store::RunRecord& run) {
  std::string text;
  for (const auto& tag : run.tags) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

/// Of a step or attempt: what is recorded at its end, until then the time since its start.
template <class Record>
std::string duration_of(const Record& record) {
  if (record.ended != WallTime{} || record.started == WallTime{})
    return core::format_duration(record.took);
  return core::format_duration(
      std::max(engine::wall_now() - record.started, std::chrono::milliseconds::zero()));
}

std::string duration_of(const store::RunRecord& run) {
  return run.status == RunStatus::running ? "" : core::format_duration(run.took);
}

std::string show_text(detached::Drivers& drivers, store::RunStore& runs, store::RunRecord run,
                      const Paint& paint) {
  std::string text = paint(Colour::bold, "run " + run.id) + " of " + run.pipeline + ": " +
                     paint(colour_of(run.status), status_of(drivers, run));
  if (run.status != RunStatus::running) text += " in " + core::format_duration(run.took);
  text += "\n";
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string("  ") + name + for_terminal(value, false) + "\n";
  };
  line("file:         ", run.file);
  line("orchestrator: ", run.orchestrator);
  if (run.driver.is_elsewhere() && run.status == RunStatus::running)
    line("driver:       ", drivers.described(run));
  line("started:      ", core::format_time(run.started));
  line("tags:         ", tags_of(run));
  if (run.parameters != "{}") line("parameters:   ", run.parameters);
  if (!run.git_commit.empty())
    line("git commit:   ",
         run.git_commit + (run.git_dirty ? " and changes that are not committed" : ""));
  text += "\n";

  Table table;
  table.add({"STEP", "STATUS", "TIME", "ATTEMPTS", "IMAGE", ""});
  std::map<std::string_view, std::size_t> instances;
  std::map<std::string_view, std::map<StepStatus, std::size_t>> many;
  const auto steps = runs.steps(run.id);
  for (const auto& step : steps)
    if (const auto base = core::base_name(step.name); base != step.name) ++instances[base];
  for (const auto& step : steps)
    if (const auto of = instances.find(core::base_name(step.name));
        of != instances.end() && of->second > many_instances)
      ++many[of->first][step.status];
  for (const auto& step : steps) {
    if (const auto group = many.find(core::base_name(step.name)); group != many.end()) {
      for (const auto& [status, count] : group->second)  // told at the first of them
        table.add({std::string(group->first) + "[*]",
                   {std::string(status == StepStatus::cached ? "reused" : to_string(status)),
                    colour_of(status)},
                   "",
                   "",
                   "",
                   std::to_string(count) + " of " + std::to_string(instances[group->first])});
      group->second.clear();
      continue;
    }
    std::string remark =
        step.reused_from.empty() ? clip(step.message, 100) : "of " + origin_of(step.reused_from);
    table.add({step.name,
               {std::string(step.status == StepStatus::cached ? "reused" : to_string(step.status)),
                colour_of(step.status)},
               step.attempts ? duration_of(step) : "",
               step.attempts ? std::to_string(step.attempts) : "",
               clip(shorten_digests(step.image), 40),
               remark});
  }
  text += table.render(paint);

  Table failures;
  failures.add({"ATTEMPT", "TIME", "EXIT CODE", ""});
  std::size_t left_out = 0;
  for (const auto& step : steps) {
    if (step.attempts <= 1 && step.status != StepStatus::failed) continue;
    if (!many.empty() && ++left_out > many_steps) continue;
    for (const auto& attempt : runs.attempts(step.run, step.name))
      failures.add({step.name + " " + std::to_string(attempt.number), duration_of(attempt),
                    attempt.exit_code ? std::to_string(*attempt.exit_code) : "",
                    clip(attempt.message, 100)});
  }
  if (!failures.empty()) text += "\n" + failures.render(paint);
  if (left_out > many_steps) text += "and " + counted(left_out - many_steps, "more step") + "\n";

  Table gpus;
  gpus.add({"ATTEMPT", "GPU", "MODEL", "UUID"});
  for (const auto& step : many.empty() ? steps : std::vector<store::StepRecord>{})
    for (const auto& attempt :
         step.attempts ? runs.attempts(step.run, step.name) : std::vector<store::AttemptRecord>{})
      for (const auto& gpu : attempt.gpus)
        gpus.add({step.name + " " + std::to_string(attempt.number), std::to_string(gpu.index),
                  gpu.model, gpu.uuid});
  if (!gpus.empty()) text += "\n" + gpus.render(paint);
  return text;
}

void print_content(const Context& context, const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  for (std::string piece(1 << 16, '\0'); in;) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    context.print(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof()) throw core::EnvironmentError("cannot read " + file.string());
}

}  // namespace

core::ExitCode runs_command(Context& context) {
  const auto& options = context.options();
  const auto state = context.existing_state();
  if (!state && !options.state.empty()) context.required_state();
  std::vector<store::RunRecord> list;
  std::optional<detached::Drivers> drivers;
  if (state) {
    auto& runs = context.runs(*state);
    list = runs.runs(options.inspect.limit, options.inspect.pipeline, options.inspect.tag);
    drivers.emplace(context.driver_context(), runs);
    for (auto& run : list) drivers->update(run);
  }
  if (options.json) {
    json entries = json::array();
    for (const auto& run : list) entries.push_back(run_json(run));
    context.print_json({{"runs", entries}});
    return core::ExitCode::ok;
  }
  if (list.empty()) context.note("no run has been made yet");
  const bool has_tags =
      std::ranges::any_of(list, [](const auto& run) { return !run.tags.empty(); });
  Table table;
  table.add({"RUN", "PIPELINE", "STATUS", "STARTED", "TIME", "STEPS", "REUSED", "FAILED",
             has_tags ? "TAGS" : ""});
  for (auto& run : list)
    table.add({run.id,
               run.pipeline,
               {status_of(*drivers, run), colour_of(run.status)},
               core::format_time(run.started),
               duration_of(run),
               std::to_string(run.steps),
               std::to_string(run.cached),
               std::to_string(run.failed),
               tags_of(run)});
  if (!table.empty()) context.print(table.render(context.paint()));
  return core::ExitCode::ok;
}

core::ExitCode show_command(Context& context) {
  auto& runs = context.existing_runs();
  detached::Drivers drivers(context.driver_context(), runs);
  const auto run = find_run(context, drivers, runs);
  if (!context.options().json) {
    context.print(show_text(drivers, runs, run, context.paint()));
    return core::ExitCode::ok;
  }
  auto entry = run_json(run);
  entry["steps"] = json::array();
  const auto outputs = outputs_of(context, runs, run);
  for (const auto& step : runs.steps(run.id))
    entry["steps"].push_back(step_json(context, runs, outputs, step));
  context.print_json(entry);
  return core::ExitCode::ok;
}

core::ExitCode artifacts_command(Context& context) {
  auto& runs = context.existing_runs();
  detached::Drivers drivers(context.driver_context(), runs);
  const auto run = find_run(context, drivers, runs);
  const auto& options = context.options();
  struct Found {
    std::string name;
    const store::StepRecord* step;
    const store::OutputRecord* output;
  };
  const auto steps = runs.steps(run.id);
  std::vector<Found> found;
  std::vector<std::string> known;
  // `STEP`, `STEP.OUTPUT`, and either with instances picked in brackets, as `STEP[c=1].OUTPUT`.
  const auto bracket = options.step.rfind(']');
  const auto dot =
      bracket == std::string::npos ? std::string::npos : options.step.find('.', bracket);
  std::set<std::string> called;
  for (const auto& step : recorded_steps(runs, run, options.step.substr(0, dot)))
    called.insert(step.name);
  const auto output_called =
      dot == std::string::npos ? std::string() : options.step.substr(dot + 1);
  for (const auto& step : steps) {
    known.push_back(step.name);
    for (const auto& output : step.outputs) {
      const std::string name = step.name + "." + output.name;
      known.push_back(name);
      const bool is_called =
          called.contains(step.name) && (output_called.empty() || output_called == output.name);
      if (options.step.empty() || is_called || options.step == name)
        found.push_back({name, &step, &output});
    }
  }
  if (!options.step.empty() && found.empty() && called.empty() &&
      std::ranges::find(known, options.step) == known.end())
    throw core::InputError("run " + run.id + " has no step or output '" + options.step + "'",
                           core::did_you_mean(options.step, known));

  auto outputs = outputs_of(context, runs, run);
  if (!options.inspect.copy_to.empty()) {
    if (found.empty())
      throw core::InputError(options.step.empty()
                                 ? "run " + run.id + " has no artifacts"
                                 : "'" + options.step + "' has no artifacts in run " + run.id);
    if (options.inspect.copy_to == "-") {
      const auto& [name, step, output] = found[0];
      if (found.size() > 1 || output->is_directory || options.json)
        throw core::InputError(
            "`--copy -` writes the content of one file to standard output, and nothing else",
            options.json
                ? "leave out `--output json`"
                : "name a file: STEP.OUTPUT; folders and several files need a folder's name");
      outputs.fetch(*step, *output);
      print_content(context, context.artifacts().path(output->digest));
      return core::ExitCode::ok;
    }
    const auto target = std::filesystem::absolute(options.inspect.copy_to);
    std::error_code error;
    const bool into_folder = found.size() > 1 || options.inspect.copy_to.string().ends_with('/') ||
                             std::filesystem::is_directory(target, error);
    if (into_folder) {
      std::filesystem::create_directories(target, error);
      if (error)
        throw core::system_error("cannot make the folder " + target.string(), error.value());
    }
    json copied = json::array();
    for (const auto& [name, step, output] : found) {
      // Several at once may have the same file name: those go by their full names.
      const auto file_name =
          found.size() > 1 ? name + std::filesystem::path(output->file_name).extension().string()
                           : output->file_name;
      if (!core::is_name(file_name))
        throw core::EnvironmentError("the record of " + run.id +
                                     " has a file name that is none: '" +
                                     core::printable(file_name) + "'");
      const auto destination = into_folder ? target / file_name : target;
      outputs.fetch(*step, *output);
      context.artifacts().copy_out(output->digest, destination);
      copied.push_back({{"output", name}, {"copied_to", destination.string()}});
      if (!options.json) context.print(name + " -> " + shown_path(destination) + "\n");
    }
    if (options.json) context.print_json({{"run", run.id}, {"copied", copied}});
    return core::ExitCode::ok;
  }

  json list = json::array();
  Table table;
  table.add({"ARTIFACT", "FILE", "SIZE", "PATH"});
  for (const auto& [name, step, output] : found) {
    list.push_back(output_json(context, outputs, step->name, *output));
    table.add({name, output->file_name + (output->is_directory ? "/" : ""),
               core::format_bytes(output->bytes),
               outputs.is_here(*output) ? shown_path(outputs.location(*output))
                                        : outputs.location(*output)});
  }
  if (options.json) {
    context.print_json({{"run", run.id}, {"artifacts", list}});
  } else {
    context.print(table.render(context.paint()));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
