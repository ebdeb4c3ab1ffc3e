#include "cli/run_records.hpp"

#include "core/bounded_json.hpp"
#include "driver/invocation.hpp"

namespace pipeline::cli {

using nlohmann::json;

namespace {

json time_json(WallTime time) {
  return time == WallTime{} ? json() : json(core::format_time(time));
}

void add_gpu_usage(const core::GpuUsage& used, json& entry) {
  if (used.mean_load) entry["mean_load"] = *used.mean_load;
  if (used.peak_load) entry["peak_load"] = *used.peak_load;
  entry["mean_memory"] = used.mean_memory;
  entry["peak_memory"] = used.peak_memory;
  entry["memory"] = used.memory;
}

json failure_json(const store::FailureRecord& failure, const std::string& message) {
  json entry{{"kind", failure.kind}, {"message", message}};
  if (!failure.hints.empty()) entry["hints"] = failure.hints;
  if (!failure.details.empty()) entry["details"] = failure.details;
  return entry;
}

json attempt_json(const store::RunStore& store, const store::AttemptRecord& attempt) {
  json entry{{"number", attempt.number},
             {"started", time_json(attempt.started)},
             {"ended", time_json(attempt.ended)},
             {"took_ms", attempt.took.count()},
             {"log", store.paths().log_file(attempt.log).string()}};
  if (!attempt.node.empty()) entry["node"] = attempt.node;
  if (!attempt.image.empty()) entry["image"] = attempt.image;
  for (const auto& gpu : attempt.gpus) {
    entry["gpus"].push_back({{"uuid", gpu.uuid}, {"index", gpu.index}, {"model", gpu.model}});
    if (gpu.slice) entry["gpus"].back()["slice"] = *gpu.slice;
    if (const auto* used = attempt.usage.of_gpu(gpu.uuid))
      add_gpu_usage(*used, entry["gpus"].back());
  }
  if (auto usage = usage_json(attempt.usage); !usage.is_null()) entry["usage"] = std::move(usage);
  if (auto phases = phases_json(attempt.phases); !phases.is_null())
    entry["phases"] = std::move(phases);
  if (attempt.exit_code) entry["exit_code"] = *attempt.exit_code;
  if (!attempt.failure_kind.empty())
    entry["failure"] =
        failure_json({attempt.failure_kind, attempt.hints, attempt.details}, attempt.message);
  return entry;
}

/// Returns the processes of an attempt with nodes; empty for one process.
json ranks_json(const std::vector<store::TaskRecord>& tasks) {
  auto list = json::array();
  if (tasks.size() < 2) return list;
  for (const auto& task : tasks) {
    json entry{{"rank", task.rank}, {"node_rank", task.node_rank}};
    if (!task.node.empty()) entry["node"] = task.node;
    if (!task.gpus.empty()) entry["gpus"] = task.gpus;
    if (task.exit_code) entry["exit_code"] = *task.exit_code;
    if (task.running) entry["running_ms"] = task.running->count();
    if (auto usage = usage_json(task.usage); !usage.is_null()) entry["usage"] = std::move(usage);
    if (task.has_failed_first) entry["failed_first"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

json usage_json(const core::Usage& usage) {
  json entry;
  if (usage.user) entry["user_ms"] = static_cast<double>(usage.user->count()) / 1000;
  if (usage.system) entry["system_ms"] = static_cast<double>(usage.system->count()) / 1000;
  if (usage.peak_memory) entry["peak_memory"] = *usage.peak_memory;
  if (usage.memory_limit) entry["memory_limit"] = *usage.memory_limit;
  if (usage.read) entry["bytes_read"] = *usage.read;
  if (usage.written) entry["bytes_written"] = *usage.written;
  if (usage.memory_kills) entry["memory_kills"] = *usage.memory_kills;
  return entry;
}

json phases_json(const core::Phases& phases) {
  json entry;
  if (phases.waiting) entry["waiting_ms"] = phases.waiting->count();
  for (const auto& [awaited, time] : phases.waits) entry["waits_ms"][awaited] = time.count();
  if (phases.preparing) entry["preparing_ms"] = phases.preparing->count();
  if (phases.transfers) entry["transfers_ms"] = phases.transfers->count();
  if (phases.running) entry["running_ms"] = phases.running->count();
  if (phases.storing) entry["storing_ms"] = phases.storing->count();
  return entry;
}

json metric_json(const store::MetricRecord& metric) {
  json entry{{"step", metric.step},
             {"name", metric.name},
             {"value", store::number_json(metric.last.value)},
             {"points", metric.points},
             {"time", time_json(metric.last.time)}};
  if (metric.last.step) entry["training_step"] = *metric.last.step;
  return entry;
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
  if (run.ended == WallTime{}) entry.erase("took_ms");
  if (!run.note.empty()) entry["note"] = run.note;
  if (const auto& lease = run.driver.lease; run.driver.has_lease())
    entry["driver"] = {
        {"job", lease.name}, {"namespace", lease.name_space}, {"context", lease.context}};
  if (!run.git_commit.empty())
    entry["git"] = {{"commit", run.git_commit}, {"dirty", run.git_dirty}};
  return entry;
}

remote_cache::RunOutputs outputs_of(Context& context, store::RunStore& store,
                                    const store::RunRecord& run) {
  const auto options = driver::invocation_of(store, run.id);
  return {context.loop(), context.artifacts(), store.folder(),
          options ? options->remote_store : settings::RemoteStoreSettings{}};
}

json output_json(Context& context, const remote_cache::RunOutputs& outputs, const std::string& step,
                 const store::OutputRecord& output) {
  json entry{{"output", step + "." + output.name},
             {"file_name", output.file_name},
             {"digest", output.digest.hex()},
             {"directory", output.is_directory},
             {"bytes", output.bytes}};
  if (output.temp) entry["temporary"] = true;
  if (output.temp && !context.artifacts().is_known(output.digest)) return entry;
  if (outputs.is_here(output))
    entry["path"] = context.artifacts().path(output.digest).string();
  else
    entry["url"] = outputs.location(output);
  return entry;
}

json step_json(Context& context, store::RunStore& store, const remote_cache::RunOutputs& outputs,
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
  if (!step.failure.kind.empty()) entry["failure"] = failure_json(step.failure, step.message);
  if (!step.reused_from.empty()) entry["reused_from"] = step.reused_from;
  for (const auto& attempt : store.attempts().list(step.run, step.name)) {
    entry["attempts"].push_back(attempt_json(store, attempt));
    if (auto ranks = ranks_json(store.attempts().tasks(attempt)); !ranks.empty())
      entry["attempts"].back()["ranks"] = std::move(ranks);
  }
  for (const auto& output : step.outputs)
    entry["outputs"].push_back(output_json(context, outputs, step.name, output));
  return entry;
}

std::string status_of(driver::Drivers& drivers, store::RunRecord& run) {
  if (run.status != RunStatus::running) return std::string(to_string(run.status));
  const auto life = drivers.liveness_of(run);
  if (run.status != RunStatus::running) return std::string(to_string(run.status));
  return life == driver::Drivers::Liveness::dead      ? "died"
         : life == driver::Drivers::Liveness::unknown ? "unknown"
                                                      : "running";
}

}  // namespace pipeline::cli
