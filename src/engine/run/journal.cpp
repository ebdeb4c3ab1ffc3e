#include "engine/run/journal.hpp"

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "engine/attempt/step_log.hpp"
#include "engine/cache/publishing.hpp"
#include "engine/cache/reused_metrics.hpp"
#include "engine/run/declarations.hpp"

namespace pipeline::engine {
namespace {

/// Number of ended steps that are persisted in one transaction: more transactions cost time, and
/// fewer cost memory.
constexpr std::size_t max_unsaved = 1000;

/// Returns the records of the processes of an attempt with nodes; their lines are in one log.
std::vector<store::TaskRecord> tasks_of(const AttemptOutcome& outcome, const std::string& log) {
  std::vector<store::TaskRecord> tasks;
  for (const auto& process : outcome.result.processes)
    tasks.push_back({.rank = process.rank,
                     .exit_code = process.exit_code,
                     .node = process.machine,
                     .log = log,
                     .usage = process.usage,
                     .node_rank = process.node,
                     .gpus = process.gpus,
                     .running = process.running,
                     .has_failed_first = process.has_failed_first});
  return tasks;
}

/// Returns true if the attempt was retried with more memory: Retries does not count it either.
bool had_more_memory_next(const StepSpec& step, const store::AttemptRecord& attempt) {
  const auto &max = step.retry->on_oom.max, &limit = attempt.usage.memory_limit;
  return attempt.failure_kind == to_string(FailureKind::out_of_memory) && max && limit &&
         *limit < *max;
}

}  // namespace

Journal::Journal(store::RunStore& store, const store::ArtifactStore& artifacts, EventSink& events,
                 const PipelineSpec& pipeline, const EngineOptions& options)
    : store_(store),
      artifacts_(artifacts),
      events_(events),
      publishes_here_(!options.remote_cache),
      is_resumed_(options.resume),
      headline_(pipeline.headline) {
  record_.id = options.run_id;
  record_.pipeline = pipeline.name;
  record_.file = pipeline.file.string();
  record_.parameters = nlohmann::json(pipeline.parameters).dump();
  record_.tags = pipeline.tags;
  record_.git_commit = options.git_commit;
  record_.git_dirty = options.git_dirty;
  record_.driver = options.driver;
  if (!record_.driver.has_lease()) record_.driver.process = store::ProcessId::self();
}

store::StepRecord Journal::record_of(const StepSpec& step, StepStatus status,
                                     const std::string& key) const {
  store::StepRecord record{.run = record_.id, .name = step.name, .status = status, .key = key};
  record.parameters = nlohmann::json(step.parameters).dump();
  return record;
}

store::StepRecord Journal::record_of(const StepSpec& step, StepStatus status,
                                     const std::string& key, const AttemptCounts& counts) const {
  auto record = record_of(step, status, key);
  record.started = counts.started;
  record.ended = wall_now();
  record.took = since(counts.start);
  record.attempts = counts.attempts;
  return record;
}

void Journal::commit(const std::function<void()>& write) {
  store_.transaction([&] {
    for (const auto& end : ended_) std::visit([&](const auto& step) { put(step); }, end);
    write();
  });
  has_reused_ = false;
  for (const auto& end : std::exchange(ended_, {}))
    std::visit([&](const auto& step) { announce(step); }, end);
}

void Journal::announce(const Reuse& reuse) {
  note_reused_metrics(store_, artifacts_, record_.id, *reuse.step, reuse.entry);
  ++summary_.cached;
  events_.emit(event::StepFinished{
      reuse.step->name, StepStatus::cached, 0, {}, std::nullopt, reuse.entry.run});
}

void Journal::announce(const Success& success) {
  const auto& step = success.step;
  events_.emit(
      event::StepFinished{step.name, step.status, step.attempts, step.took, std::nullopt, {}});
}

void Journal::put(const Reuse& reuse) {
  const auto& [step, entry] = reuse;
  if (entry.run == record_.id && entry.step == step->name) return;  // Made before an interruption.
  auto record = record_of(*step, StepStatus::cached, entry.key);
  record.started = record.ended = wall_now();
  record.reused_from = entry.run;
  record.outputs = entry.outputs;
  store_.runs().put_step(record);
  publish(*step, entry.run, entry.outputs);
}

void Journal::put(const Success& success) {
  const auto& [step, attempt, tasks, parts, origins, spec, key_lock] = success;
  store_.attempts().put(attempt, tasks);
  store_.runs().put_step(step);
  store_.cache().add({step.key, record_.id, step.name, step.outputs}, record_.pipeline, parts);
  for (const auto& [input, pieces] : origins.gathered)
    store_.lineage().record_gather(input, pieces);
  if (!origins.taken.empty()) store_.lineage().record_matrix_inputs(step.key, origins.taken);
  publish(*spec, record_.id, step.outputs);
}

void Journal::publish(const StepSpec& step, const std::string& run,
                      const std::vector<store::OutputRecord>& outputs) {
  if (!publishes_here_) return;
  for (const auto& [name, version] : versions_of(step, run, outputs))
    store_.published().change(name,
                              [&](store::PublishedName& all) { return all.publish(version); });
}

void Journal::flush() {
  if (!ended_.empty()) commit([] {});
}

void Journal::flush_reused() {
  if (has_reused_) commit([] {});
}

void Journal::run_began(const std::string& orchestrator, const std::vector<const StepSpec*>& steps,
                        const std::string& versions) {
  record_.orchestrator = orchestrator;
  record_.started = wall_now();
  record_.steps = steps.size();
  store_.transaction([&] {
    store_.runs().add(record_);
    store_.key_values().put(store::declared_kind, record_.id, declarations_of(steps, headline_));
    if (!versions.empty()) store_.key_values().put(store::versions_kind, record_.id, versions);
    for (const auto* step : steps) store_.runs().put_step(record_of(*step, StepStatus::pending));
  });
  announce_start(steps);
}

std::map<std::string, ResumePoint> Journal::run_resumed(const std::string& orchestrator,
                                                        const std::vector<const StepSpec*>& steps) {
  std::map<std::string, ResumePoint> resume_point;
  store_.transaction([&] {
    const auto before = store_.runs().find(record_.id);
    const bool has_own_lease =
        before && record_.driver.has_lease() && before->driver.lease == record_.driver.lease;
    if (!before || (before->status == RunStatus::running && !has_own_lease))
      throw core::InputError("run " + record_.id +
                             " is running: another process has just resumed it");
    record_.orchestrator = orchestrator;
    record_.started = before->started;
    record_.took = before->took;
    record_.steps = steps.size();
    for (auto& record : store_.runs().steps(record_.id))
      earlier_.emplace(record.name, std::move(record));
    store_.runs().resume(record_);
    for (const auto* step : steps)
      if (auto point = resume_step(*step)) resume_point.emplace(step->name, std::move(*point));
  });
  announce_start(steps);
  return resume_point;
}

std::optional<ResumePoint> Journal::resume_step(const StepSpec& step) {
  const auto known = earlier_.extract(step.name);
  const auto record = known ? known.mapped() : store::StepRecord{};
  if (record.status == StepStatus::succeeded || record.status == StepStatus::cached)
    return std::nullopt;
  ResumePoint state;
  for (const auto& attempt : store_.attempts().list(record_.id, step.name)) {
    if (state.counts.attempts == 0) state.counts.started = attempt.started;
    state.counts.attempts = attempt.number;
    state.is_open = attempt.ended == WallTime{};
    state.memory = attempt.usage.memory_limit;
    state.is_out_of_memory = attempt.failure_kind == to_string(FailureKind::out_of_memory);
    if (state.is_open || attempt.failure_kind == to_string(FailureKind::cancelled)) continue;
    if (step.retry->avoid_failed == true) state.counts.avoid(attempt);
    const bool is_interruption = attempt.failure_kind == to_string(FailureKind::infrastructure);
    if ((is_interruption && attempt.was_preempted) || had_more_memory_next(step, attempt)) continue;
    ++(is_interruption ? state.counts.interruptions : state.counts.failures);
  }
  state.key = record.key;
  // With the key, because this driver may be killed before the step starts.
  store_.runs().put_step(record_of(step, StepStatus::pending, record.key));
  if (state.counts.attempts == 0) return std::nullopt;
  return state;
}

std::map<std::string, ResumePoint> Journal::expanded(const std::vector<const StepSpec*>& steps,
                                                     const std::vector<const StepSpec*>& instances,
                                                     std::optional<unsigned> round) {
  std::map<std::string, ResumePoint> resume_point;
  record_.steps += instances.size();
  if (!round || *round == 0) record_.steps -= steps.size();
  commit([&] {
    for (const auto* step : steps) store_.runs().expand_step(record_.id, step->name, record_.steps);
    for (const auto* instance : instances) {
      if (!earlier_.contains(instance->name))
        store_.runs().put_step(record_of(*instance, StepStatus::pending));
      else if (auto point = resume_step(*instance))
        resume_point.emplace(instance->name, std::move(*point));
    }
  });
  events_.emit(event::StepExpanded{steps.front()->name, instances.size(), record_.steps, round});
  return resume_point;
}

void Journal::announce_start(const std::vector<const StepSpec*>& steps) {
  event::RunStarted event{record_.id, record_.pipeline, record_.orchestrator, steps.size()};
  std::map<std::string_view, std::size_t> places;
  for (const auto* step : steps) {
    if (!step->instance) continue;
    const auto [place, is_new] = places.emplace(*step->instance->of, event.instances.size());
    if (is_new) event.instances.emplace_back(*step->instance->of, 0);
    ++event.instances[place->second].second;
  }
  events_.emit(event);
}

store::AttemptRecord Journal::attempt_began(const StepSpec& step, const std::string& key,
                                            const AttemptStart& start) {
  const auto& [number, environment, memory, gpus] = start;
  store::AttemptRecord attempt{
      .run = record_.id, .step = step.name, .number = number, .started = wall_now()};
  attempt.log = store::log_name(record_.id, step.name, number);
  std::vector<event::Gpu> held;
  for (const auto& gpu : gpus)
    held.push_back({gpu.uuid, gpu.index,
                    gpu.profile.empty() ? gpu.model : gpu.model + " " + gpu.profile, gpu.slice});
  attempt.gpus = held;
  attempt.usage.memory_limit = memory;
  attempt.image = environment;
  auto record = record_of(step, StepStatus::running, key);
  record.started = attempt.started;
  record.attempts = number;
  record.image = environment;
  commit([&] {
    // Attempts before the resumption do not contribute to the step's result.
    if (number == 1 && is_resumed_) store_.attempts().remove(record_.id, step.name);
    store_.runs().put_step(record);
    store_.attempts().put(attempt);
  });
  events_.emit(event::StepStarted{step.name, number, environment, std::move(held)});
  return attempt;
}

store::AttemptRecord Journal::attempt_ended(store::AttemptRecord record, Clock::time_point start,
                                            const AttemptOutcome& outcome,
                                            const std::optional<Failure>& failure) {
  record.ended = wall_now();
  record.took = since(start);
  record.exit_code = outcome.result.exit_code;
  const auto memory = record.usage.memory_limit;
  record.usage = outcome.result.usage;
  record.usage.memory_limit = memory;
  if (record.gpus.empty()) record.gpus = outcome.result.gpus;
  record.phases = outcome.phases;
  record.node = outcome.result.node;
  if (!outcome.result.image.empty()) record.image = outcome.result.image;
  record.code = outcome.code;
  record.stored = outcome.stored;
  record.was_preempted = outcome.result.was_preempted;
  if (failure) {
    record.failure_kind = to_string(failure->kind);
    record.message = failure->message;
    record.hints = failure->hints;
    record.details = with_log_tail(failure->details, outcome.log_tail);
    store_.transaction([&] { store_.attempts().put(record, tasks_of(outcome, record.log)); });
  }
  return record;
}

void Journal::retried(const StepSpec& step, unsigned number, const Failure& failure,
                      const Retry& retry) {
  events_.emit(event::StepRetried{step.name, number, failure, retry.delay, retry.memory});
}

void Journal::reused(Reuse reuse) {
  ended_.push_back(std::move(reuse));
  has_reused_ = true;
  if (ended_.size() >= max_unsaved) flush();
}

unsigned Journal::restarted(const StepSpec& step, StepStatus ended_as) {
  flush();
  if (ended_as == StepStatus::cached) --summary_.cached;
  if (ended_as == StepStatus::succeeded) --summary_.succeeded;
  const auto attempts = store_.attempts().list(record_.id, step.name);
  return attempts.empty() ? 0 : attempts.back().number;
}

void Journal::succeeded(const StepSpec& step, const StepKey& key, const AttemptOutcome& outcome,
                        const AttemptCounts& counts, InputOrigins origins) {
  auto record = record_of(step, StepStatus::succeeded, key.key, counts);
  record.image = outcome.result.image;
  record.outputs = outcome.outputs;
  ended_.push_back(Success{std::move(record), outcome.record, tasks_of(outcome, outcome.record.log),
                           key.parts, std::move(origins), &step, outcome.key_lock});
  ++summary_.succeeded;
}

void Journal::failed(const StepSpec& step, Failure failure, const std::string& key,
                     const AttemptCounts& counts, const std::vector<const StepSpec*>& lost) {
  const bool is_cancelled = failure.kind == FailureKind::cancelled;
  if (step.allow_failure && !is_cancelled)
    failure.hints.emplace_back("the run continues, because the step has `allow_failure: true`");
  auto record =
      record_of(step, is_cancelled ? StepStatus::cancelled : StepStatus::failed, key, counts);
  record.image = counts.image;
  record.message = failure.message;
  record.failure = {std::string(to_string(failure.kind)), failure.hints, failure.details};
  commit([&] { store_.runs().put_step(record); });
  summary_.build_failed |= failure.kind == FailureKind::build && !step.allow_failure;
  summary_.environment_failed |= failure.kind == FailureKind::environment && !step.allow_failure;
  ++(is_cancelled ? summary_.cancelled : step.allow_failure ? tolerated_ : summary_.failed);
  events_.emit(event::StepFinished{
      step.name, record.status, counts.attempts, record.took, std::move(failure), {}});
  dependents_lost(step, record.status, lost);
}

void Journal::dependents_lost(const StepSpec& step, StepStatus status,
                              const std::vector<const StepSpec*>& lost) {
  const auto needs = "needs '" + step.name + "', which ";
  if (status == StepStatus::cancelled)
    left_out(lost, needs + "was cancelled", StepStatus::cancelled);
  else if (status == StepStatus::skipped)
    put_left_out(lost, needs + "was skipped", StepStatus::skipped, LeftOutBy::condition);
  else
    left_out(lost, needs + "failed", StepStatus::skipped);
}

void Journal::left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                       StepStatus status) {
  put_left_out(steps, reason, status, LeftOutBy::failure);
}

void Journal::skipped(const StepSpec& step, const std::string& reason,
                      const std::vector<const StepSpec*>& lost) {
  put_left_out({&step}, reason, StepStatus::skipped, LeftOutBy::condition);
  dependents_lost(step, StepStatus::skipped, lost);
}

void Journal::put_left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                           StepStatus status, LeftOutBy cause) {
  if (steps.empty()) return;
  commit([&] {
    for (const auto* step : steps) {
      auto record = record_of(*step, status);
      record.message = reason;
      store_.runs().put_step(record);
    }
  });
  for (const auto* step : steps) {
    ++(status == StepStatus::cancelled ? summary_.cancelled : summary_.skipped);
    std::optional<Failure> failure;
    if (cause == LeftOutBy::failure) failure = Failure{FailureKind::cancelled, reason, {}, {}};
    events_.emit(event::StepFinished{step->name, status, 0, {}, std::move(failure), {}, reason});
  }
}

RunSummary Journal::run_ended(bool interrupted) {
  flush();
  const bool is_complete =
      summary_.failed == 0 &&
      summary_.succeeded + summary_.cached + summary_.skipped + tolerated_ == record_.steps;
  const bool is_failed = summary_.failed + summary_.cancelled > 0 || summary_.lacks_copies;
  record_.status = interrupted && !is_complete ? RunStatus::interrupted
                   : is_failed                 ? RunStatus::failed
                                               : RunStatus::succeeded;
  summary_.environment_failed |= summary_.lacks_copies;
  record_.ended = wall_now();
  record_.took += since(began_);
  record_.cached = summary_.cached;
  summary_.failed += tolerated_;
  record_.failed = summary_.failed;
  commit([&] {
    // The pipeline of a resumed run may have changed.
    if (record_.status == RunStatus::succeeded)
      for (const auto& [name, gone] : earlier_) store_.runs().remove_step(record_.id, name);
    store_.runs().finish(record_);
  });
  summary_.run = record_.id;
  summary_.status = record_.status;
  events_.emit(event::RunFinished{record_.id, record_.status, record_.took});
  return summary_;
}

std::optional<RunSummary> Journal::reuse_whole_run(store::RunStore& store, EventSink& events,
                                                   const EngineOptions& options,
                                                   const UnchangedRun& earlier,
                                                   Clock::time_point began) {
  store::RunRecord record;
  std::vector<store::StepRecord> steps;
  bool has_original = false;
  store.transaction([&] {
    const auto original = store.runs().find(earlier.run);
    has_original = original && original->id == earlier.run;
    if (!has_original) return;
    record = *original;
    record.id = options.run_id;
    record.tags = earlier.tags;  // Tags by `pipe tag`, and the note, stay with the earlier run.
    record.note.clear();
    record.git_commit = options.git_commit;
    record.git_dirty = options.git_dirty;
    record.driver = {store::ProcessId::self(), {}};
    record.same_as = earlier.run;
    record.status = RunStatus::succeeded;
    record.took = since(began);
    record.ended = wall_now();
    record.started = record.ended - record.took;
    record.cached = earlier.steps - earlier.skipped;
    record.failed = 0;
    store.runs().add(record);
    store.runs().finish(record);
    // Read here, so that a failure leaves no record: the caller then starts a run of this name.
    if (options.reports_reused_steps) steps = store.runs().steps(record.id);
  });
  if (!has_original) return std::nullopt;
  events.emit(event::RunStarted{record.id, record.pipeline, record.orchestrator, earlier.steps});
  for (const auto& step : steps) {
    const auto status =
        step.status == StepStatus::skipped ? StepStatus::skipped : StepStatus::cached;
    events.emit(event::StepFinished{
        step.name, status, 0, {}, std::nullopt, step.reused_from, step.message});
  }
  events.emit(event::RunFinished{record.id, RunStatus::succeeded, record.took});
  return RunSummary{.run = record.id,
                    .status = RunStatus::succeeded,
                    .cached = record.cached,
                    .skipped = earlier.skipped};
}

}  // namespace pipeline::engine
