#include "engine/run.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "async/gate.hpp"
#include "async/semaphore.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/graph.hpp"
#include "engine/attempt.hpp"
#include "engine/gpu_pool.hpp"
#include "engine/journal.hpp"
#include "engine/refusal.hpp"
#include "engine/results.hpp"
#include "engine/retries.hpp"
#include "engine/run_fingerprint.hpp"

namespace pipeline::engine {
namespace {

/// A cluster has a queue of its own; each attempt there costs us a connection for its log.
constexpr unsigned most_elsewhere = 100;

/// What is on disk comes first: an event is seen by others only once it is stored.
class Run {
 public:
  Run(const PipelineSpec& pipeline, orchestrators::Orchestrator& orchestrator,
      store::RunStore& runs, store::ArtifactStore& artifacts, store::StatIndex& stats,
      const CodeProvider& code, EventSink& events, core::CancelSource& user, RunOptions options,
      asio::any_io_executor executor)
      : pipeline_(pipeline),
        orchestrator_(orchestrator),
        runs_(runs),
        artifacts_(artifacts),
        stats_(stats),
        code_(code),
        events_(events),
        user_(user),
        options_(std::move(options)),
        selected_(select_steps(pipeline, options_.only_step)),
        graph_(needs_of(pipeline, selected_)),
        scheduler_(graph_),
        states_(selected_.size()),
        executor_(executor),
        wake_(executor),
        slots_(options_.jobs ? options_.jobs : std::max(1u, std::thread::hardware_concurrency())),
        slots_elsewhere_(options_.jobs ? options_.jobs : most_elsewhere),
        pool_(2),
        results_(pipeline, runs, artifacts, stats, code, events, user, pool_, options_),
        gpus_(executor, pool_, orchestrator, events, stop_, slots_, options_,
              [this](async::Task<> task) { spawn(std::move(task)); }),
        journal_(runs, events, pipeline, options_) {
    for (core::StepIndex i = 0; i < selected_.size(); ++i) position_.emplace(spec(i).name, i);
    if (!options_.identity.empty() && options_.use_cache) fingerprint_.emplace(options_.identity);
  }

  async::Task<RunSummary> execute();
  async::Task<> prepare_detached();

 private:
  struct State {
    StepStatus status = StepStatus::pending;
    std::vector<store::OutputRecord> outputs;
    std::unique_ptr<async::Gate> prepared;  ///< Made when preparation begins.
    orchestrators::Environment environment;
    std::exception_ptr prepare_error;
    std::optional<ResumePoint> resume_point;  ///< Of a run that is resumed.
  };

  const StepSpec& spec(core::StepIndex i) const { return pipeline_.steps[selected_[i]]; }
  async::Semaphore& slots_of(const StepSpec& step) {
    return orchestrator_.capabilities_of(step).on_this_machine ? slots_ : slots_elsewhere_;
  }
  std::vector<const StepSpec*> specs(StepStatus status) const;
  OutputsOf outputs_of() const;
  std::string places(const std::vector<const StepSpec*>& steps) const;

  void check_secrets() const;
  async::Task<> check(const std::vector<const StepSpec*>& steps);
  async::Task<bool> has_all_results();
  void note_sources();
  async::Task<> sweep();
  async::Task<> prefetch();
  void spawn(async::Task<> task);
  void start(core::StepIndex i, std::optional<StepKey> key, orchestrators::Environment environment);
  async::Task<> run_step(core::StepIndex i, std::optional<StepKey> key);
  async::Task<AttemptOutcome> try_once(core::StepIndex i, const std::string& key,
                                       AttemptOptions which, GpuReservation gpus);
  bool may_be_elsewhere(core::StepIndex i) const {
    return results_.may_be_elsewhere(spec(i), states_[i].resume_point.has_value());
  }
  async::Task<bool> is_made_elsewhere(core::StepIndex i, const StepKey& key);
  async::Task<bool> joins(core::StepIndex i, const std::string& key);
  async::Task<orchestrators::Environment> environment_of(core::StepIndex i);
  async::Task<orchestrators::Environment> prepare(core::StepIndex i);
  void start_preparing(core::StepIndex i);
  async::Task<> prepared(core::StepIndex i);
  async::Task<> pause(Duration delay);

  Reuse reuse(core::StepIndex i, store::CacheEntry entry);
  void fail(core::StepIndex i, Failure failure, const std::string& key,
            const AttemptCounts& counts);
  void finish_rest();
  async::Task<> remove_rest();
  std::string remove_work();
  void remember();

  std::set<std::string> reported_;  ///< Notices, each shown once a run.
  const PipelineSpec& pipeline_;
  orchestrators::Orchestrator& orchestrator_;
  store::RunStore& runs_;
  store::ArtifactStore& artifacts_;
  store::StatIndex& stats_;
  const CodeProvider& code_;
  EventSink& events_;
  core::CancelSource& user_;
  RunOptions options_;
  std::vector<std::size_t> selected_;
  core::Graph graph_;
  core::Scheduler scheduler_;
  std::vector<State> states_;
  std::unordered_map<std::string_view, core::StepIndex> position_;
  asio::any_io_executor executor_;
  async::Gate wake_;
  async::Semaphore slots_;  ///< This machine's.
  async::Semaphore slots_elsewhere_;
  asio::thread_pool pool_;
  Results results_;
  core::CancelSource stop_;  ///< The user's stop, or fail_fast's.
  GpuPool gpus_;
  core::CancelSource building_;  ///< Follows stop_.
  std::string stopped_by_;       ///< The step whose failure keeps others from starting.
  std::size_t active_ = 0;
  std::exception_ptr fatal_;  ///< The store itself failed: nothing can be recorded any more.
  Journal journal_;
  std::optional<RunFingerprint> fingerprint_;
  bool has_prefetched_ = false;
  std::set<core::Digest> checked_;  ///< Artifacts that this run has made or read as a whole.
};

OutputsOf Run::outputs_of() const {
  return [this](const SourceSpec& source) {
    const auto i = position_.at(source.step);
    return MadeOutput{&spec(i), &*std::ranges::find(states_[i].outputs, source.output,
                                                    &store::OutputRecord::name)};
  };
}

std::vector<const StepSpec*> Run::specs(StepStatus status) const {
  std::vector<const StepSpec*> found;
  for (core::StepIndex i = 0; i < states_.size(); ++i)
    if (states_[i].status == status) found.push_back(&spec(i));
  return found;
}

/// `docker`, or of a run in several places `local, kubernetes`.
std::string Run::places(const std::vector<const StepSpec*>& steps) const {
  std::string names;
  std::set<std::string_view> seen;
  for (const auto* step : steps)
    if (const std::string& name = orchestrator_.capabilities_of(*step).name;
        seen.insert(name).second)
      names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? orchestrator_.capabilities().name : names;
}

/// Before anything is built: what a step will ask of the caller must be there.
void Run::check_secrets() const {
  for (core::StepIndex i = 0; i < selected_.size(); ++i) {
    if (!spec(i).environment.empty()) resolve_environment(spec(i));
    if (!spec(i).secrets.empty()) resolve_secrets(spec(i));
  }
}

async::Task<> Run::check(const std::vector<const StepSpec*>& steps) {
  check_secrets();
  co_await gpus_.check(steps, pipeline_.file);
  auto obstacles = co_await orchestrator_.check(steps);
  refuse(std::move(obstacles), pipeline_.file);
  if (!results_.has_store() || std::ranges::none_of(steps, &StepSpec::cache)) co_return;
  const bool needs_nobody = co_await has_all_results();
  if (!needs_nobody) co_await results_.check_store();
}

/// Whether the run will find that every step was made on this machine before.
async::Task<bool> Run::has_all_results() {
  if (!options_.use_cache) co_return false;
  const auto order = graph_.topological_order();
  try {
    for (const auto i : *order) {
      const auto environment = co_await environment_of(i);
      if (environment.id.empty()) co_return false;
      const auto key = results_.key(spec(i), environment.id, outputs_of());
      auto entry = results_.here(spec(i), key.key);
      if (!entry) co_return false;
      states_[i].outputs = std::move(entry->outputs);
    }
  } catch (const core::EnvironmentError&) {  // told when the step's turn comes
    co_return false;
  }
  co_return true;
}

async::Task<> Run::prepare_detached() {
  const auto steps = specs(StepStatus::pending);
  co_await check(steps);
  const core::CancelSource::Listener builds(
      user_, [this](core::StopLevel level) { building_.stop(level); });
  for (core::StepIndex i = 0; i < selected_.size(); ++i) start_preparing(i);
  while (active_ > 0) {
    wake_.close();
    co_await wake_.wait();
  }
  co_await orchestrator_.settle();
  for (const auto& state : states_)
    if (state.prepare_error) std::rethrow_exception(state.prepare_error);
  journal_.run_began(places(steps), steps);
}

async::Task<RunSummary> Run::execute() {
  const auto steps = specs(StepStatus::pending);
  co_await check(steps);
  if (options_.resume) {
    for (auto& [step, resume_point] : journal_.run_resumed(places(steps), steps))
      states_[position_.at(step)].resume_point = std::move(resume_point);
  } else {
    journal_.run_began(places(steps), steps);
  }
  const core::CancelSource::Listener listener(user_, [this](core::StopLevel level) {
    stop_.stop(level);
    wake_.open();
  });
  const core::CancelSource::Listener builds(
      stop_, [this](core::StopLevel level) { building_.stop(level); });
  try {
    note_sources();
    co_await sweep();
    if (!results_.has_store() || !options_.use_cache)
      co_await prefetch();  // else once it is known that there is anything to run
    while (active_ > 0 || (scheduler_.has_ready() && stop_.level() == core::StopLevel::none &&
                           stopped_by_.empty() && !fatal_)) {
      if (scheduler_.done())
        building_.stop(
            core::StopLevel::immediate);  // what is still being built, nobody needs any more
      co_await wake_.wait();
      wake_.close();
      co_await sweep();
    }
  } catch (...) {
    fatal_ = std::current_exception();
  }
  if (fatal_) stop_.stop(core::StopLevel::graceful);
  while (active_ >
         0) {  // coroutines of steps refer to this object: wait for them, whatever happened
    wake_.close();
    co_await wake_.wait();
  }
  co_await orchestrator_.settle();
  const auto left = remove_work();
  if (fatal_) std::rethrow_exception(fatal_);
  if (!left.empty()) events_.emit(event::Notice{"", left});
  finish_rest();
  results_.conclude();
  stats_.save();
  auto summary = journal_.run_ended(user_.level() != core::StopLevel::none);
  if (options_.resume) co_await remove_rest();
  if (fingerprint_ && summary.status == RunStatus::succeeded) remember();
  co_return summary;
}

/// What the spec was made from is remembered as it is at the beginning: a file that changes during
/// the run is looked at again by the next one.
void Run::note_sources() {
  if (!fingerprint_) return;
  for (const auto& path : options_.sources) fingerprint_->looked_at(path);
  std::set<const void*> seen;
  for (core::StepIndex i = 0; i < selected_.size(); ++i) {
    const auto& files = code_.files(spec(i));
    if (seen.insert(&files).second)
      for (const auto& file : files) fingerprint_->looked_at(file.source);
    for (const auto& [name, value] : spec(i).environment)
      if (!value) fingerprint_->took_variable(name);
    if (const auto& step = spec(i).program; step && seen.insert(step->program.get()).second) {
      fingerprint_->looked_at(step->program->executable);
      for (const auto& library : step->program->libraries) fingerprint_->looked_at(library);
    }
    if (!spec(i).cache || !spec(i).secrets.empty())
      fingerprint_->invalidate();  // runs each time, or may be missing a secret
  }
}

void Run::remember() {
  std::set<std::string> rechecks;
  for (const auto& state : states_) {
    if (rechecks.insert(state.environment.recheck).second)
      fingerprint_->ran_in(state.environment.recheck);
    for (const auto& output : state.outputs) fingerprint_->made(output.digest);
  }
  fingerprint_->save(runs_, journal_.run_id(), selected_.size());
}

/// Takes every step that is ready: reuses it at once, or starts it.
async::Task<> Run::sweep() {
  std::vector<Reuse> hits;
  while (stop_.level() == core::StopLevel::none && stopped_by_.empty()) {
    const auto i = scheduler_.take();
    if (!i) break;
    std::optional<Failure> failure;
    try {
      auto environment = co_await environment_of(*i);
      std::optional<StepKey> key;
      if (!environment.id.empty()) key = results_.key(spec(*i), environment.id, outputs_of());
      if (auto entry = key ? results_.here(spec(*i), key->key) : std::nullopt) {
        states_[*i].environment = std::move(environment);
        hits.push_back(reuse(*i, std::move(*entry)));
      } else {
        journal_.reused(std::exchange(hits, {}));
        start(*i, std::move(key), std::move(environment));
      }
    } catch (const core::BuildError& error) {
      failure = Failure{FailureKind::build, error.what(), error.advice(), error.details()};
    } catch (const core::EnvironmentError& error) {
      failure = Failure{FailureKind::environment, error.what(), error.advice(), {}};
    }
    if (failure) fail(*i, std::move(*failure), {}, {});
  }
  journal_.reused(hits);
}

/// Makes what later steps will run in while the first ones run.
async::Task<> Run::prefetch() {
  if (active_ == 0 || std::exchange(has_prefetched_, true)) co_return;
  for (core::StepIndex i = 0; i < selected_.size() && stop_.level() == core::StopLevel::none; ++i) {
    if (states_[i].status != StepStatus::pending || states_[i].prepared) continue;
    bool is_ready = true;
    try {
      is_ready = (co_await orchestrator_.environment(spec(i))).ready;
    } catch (const core::EnvironmentError&) {  // told when the step's turn comes
    }
    if (!is_ready && !states_[i].prepared) start_preparing(i);
  }
}

void Run::start(core::StepIndex i, std::optional<StepKey> key,
                orchestrators::Environment environment) {
  states_[i].status = StepStatus::running;
  if (environment.ready && key) {
    states_[i].environment = std::move(environment);
    states_[i].prepared = std::make_unique<async::Gate>(executor_);
    states_[i].prepared->open();
  } else if (!states_[i].prepared && !(key && may_be_elsewhere(i))) {
    start_preparing(i);
  }
  spawn(run_step(i, std::move(key)));
}

void Run::spawn(async::Task<> task) {
  ++active_;
  asio::co_spawn(executor_, std::move(task), [this](std::exception_ptr error) {
    if (error && !fatal_) {
      fatal_ = error;
      stop_.stop(core::StopLevel::graceful);
    }
    --active_;
    wake_.open();
  });
}

async::Task<orchestrators::Environment> Run::environment_of(core::StepIndex i) {
  return engine::environment_of(orchestrator_, spec(i), pipeline_.file, results_.has_store());
}

async::Task<orchestrators::Environment> Run::prepare(core::StepIndex i) {
  auto environment = co_await orchestrator_.prepare(spec(i), events_, building_);
  if (!results_.has_store()) co_return environment;
  co_return co_await shared_environment(orchestrator_, spec(i), std::move(environment));
}

void Run::start_preparing(core::StepIndex i) {
  states_[i].prepared = std::make_unique<async::Gate>(executor_);
  ++active_;
  asio::co_spawn(executor_, prepare(i),
                 [this, i](std::exception_ptr error, orchestrators::Environment environment) {
                   states_[i].environment = std::move(environment);
                   states_[i].prepare_error = error;
                   states_[i].prepared->open();
                   if (error && pipeline_.execution_mode == ExecutionMode::fail_fast)
                     stop_.stop(core::StopLevel::graceful);
                   --active_;
                   wake_.open();
                 });
}

async::Task<> Run::prepared(core::StepIndex i) {
  co_await states_[i].prepared->wait();
  if (states_[i].prepare_error) std::rethrow_exception(states_[i].prepare_error);
}

async::Task<> Run::run_step(core::StepIndex i, std::optional<StepKey> key) {
  const auto& step = spec(i);
  AttemptCounts counts;
  std::optional<Failure> failure;
  try {
    if (key) {
      const bool is_made = co_await is_made_elsewhere(i, *key);
      if (is_made) co_return;
      if (!states_[i].prepared) start_preparing(i);
    }
    co_await prepared(i);
    if (!key) {
      key = results_.key(step, states_[i].environment.id, outputs_of());
      if (auto entry = results_.here(step, key->key)) {
        const std::vector<Reuse> hit{reuse(i, std::move(*entry))};
        journal_.reused(hit);
        co_return;
      }
      const bool is_made = co_await is_made_elsewhere(i, *key);
      if (is_made) co_return;
    }
    for (const auto& notice : states_[i].environment.notices)
      if (reported_.insert(notice).second) events_.emit(event::Notice{step.name, notice});
    auto& slots = slots_of(step);
    bool joins_next = co_await joins(i, key->key);
    if (const auto& resume_point = states_[i].resume_point) {
      counts = resume_point->counts;
      if (joins_next) --counts.attempts;
    }
    Retries retries(step.retry, orchestrator_.capabilities_of(step).infrastructure_retries);
    for (;;) {
      std::optional<GpuReservation> reservation;
      bool has_slot = true;
      if (gpus_.wants(step)) {
        reservation = co_await gpus_.acquire(step, scheduler_.urgency(i));
        has_slot = reservation.has_value();
      } else {
        co_await slots.acquire(scheduler_.urgency(i));
      }
      if (stop_.level() != core::StopLevel::none) {
        if (has_slot) slots.release();
        failure = Failure{FailureKind::cancelled, "cancelled before it started", {}, {}};
        break;
      }
      if (counts.attempts == 0) counts = {};
      ++counts.attempts;
      AttemptOutcome outcome;
      std::exception_ptr error;
      try {
        auto held = reservation ? std::move(*reservation) : GpuReservation();
        outcome = co_await try_once(
            i, key->key, {counts.attempts, std::exchange(joins_next, false)}, std::move(held));
      } catch (...) {
        error = std::current_exception();
      }
      slots.release();
      if (error) std::rethrow_exception(error);
      if (!outcome.result.failure) {
        states_[i].outputs = outcome.outputs;
        states_[i].status = StepStatus::succeeded;
        journal_.succeeded(step, *key, outcome, counts);
        store::CacheEntry entry{key->key, journal_.run_id(), step.name, outcome.outputs};
        if (outcome.result.cleanup || results_.are_shared(step))
          spawn(results_.hand_on(step, std::move(entry), std::move(outcome.result.cleanup)));
        scheduler_.succeeded(i);
        co_return;
      }
      co_await results_.clear_away(std::move(outcome.result.cleanup));
      failure = outcome.result.failure;
      failure->details.insert(failure->details.end(), outcome.log_tail.begin(),
                              outcome.log_tail.end());
      const auto pause_before_next =
          stop_.level() == core::StopLevel::none ? retries.after(*failure, counts) : std::nullopt;
      if (!pause_before_next) break;
      journal_.retried(step, counts.attempts, *failure, *pause_before_next);
      co_await pause(*pause_before_next);
    }
  } catch (const core::BuildError& error) {
    failure = Failure{FailureKind::build, error.what(), error.advice(), error.details()};
  } catch (const core::EnvironmentError& error) {
    failure = Failure{FailureKind::environment, error.what(), error.advice(), {}};
  }
  if (stop_.level() != core::StopLevel::none && failure->kind != FailureKind::cancelled &&
      counts.attempts == 0)
    failure = Failure{FailureKind::cancelled,
                      "cancelled before it started",
                      {},
                      {}};  // its environment was given up
  fail(i, std::move(*failure), key ? key->key : "", counts);
}

async::Task<AttemptOutcome> Run::try_once(core::StepIndex i, const std::string& key,
                                          AttemptOptions which, GpuReservation held) {
  const auto& step = spec(i);
  auto record = journal_.attempt_began(step, key, which.number, states_[i].environment.description,
                                       held.gpus);
  const AttemptContext context{pipeline_, orchestrator_, runs_, artifacts_,        stats_,  code_,
                               events_,   pool_,         stop_, journal_.run_id(), checked_};
  const auto start = Clock::now();
  AttemptOutcome outcome;
  std::exception_ptr error;
  std::optional<Failure> failure;
  try {
    outcome = co_await run_attempt(context, step, which, outputs_of(), std::move(held), record.log);
    failure = outcome.result.failure;
  } catch (const core::EnvironmentError& failed) {
    failure = Failure{FailureKind::environment, failed.what(), failed.advice(), {}};
    error = std::current_exception();
  }
  outcome.record =
      journal_.attempt_ended(std::move(record), start, outcome.result.exit_code, failure);
  if (error) std::rethrow_exception(error);
  co_return outcome;
}

async::Task<bool> Run::is_made_elsewhere(core::StepIndex i, const StepKey& key) {
  std::optional<store::CacheEntry> entry;
  if (may_be_elsewhere(i)) entry = co_await results_.fetch_remote(spec(i), key);
  if (!entry) {
    if (results_.has_store() && !has_prefetched_) spawn(prefetch());  // there is something to run
    co_return false;
  }
  const std::vector<Reuse> hit{reuse(i, std::move(*entry))};
  journal_.reused(hit);
  co_return true;
}

/// Whether the attempt that was cut off is one of the step as it is now, and may still run.
async::Task<bool> Run::joins(core::StepIndex i, const std::string& key) {
  const auto& resume_point = states_[i].resume_point;
  if (!resume_point || !resume_point->is_open ||
      !orchestrator_.capabilities_of(spec(i)).outlives_driver)
    co_return false;
  if (resume_point->key == key) co_return true;
  co_await orchestrator_.discard_attempt(journal_.run_id(), spec(i).name,
                                         resume_point->counts.attempts);
  co_return false;
}

/// What of the run's earlier driver nobody has joined.
async::Task<> Run::remove_rest() {
  std::string notice;
  try {
    co_await orchestrator_.remove_orphans([this](const std::string& id) {
      const auto run = runs_.find_run(id);
      return run && run->status == RunStatus::running;
    });
  } catch (const core::EnvironmentError& error) {
    notice = std::string("cannot remove what the run had left: ") + error.what();
  }
  if (!notice.empty()) events_.emit(event::Notice{"", notice});
}

/// What a step has left may be another user's, as of a container that ran as root: its results
/// stand.
/// @return what could not be removed, in words
std::string Run::remove_work() {
  try {
    core::remove_tree(work_folder(runs_, journal_.run_id()));
    return {};
  } catch (const core::EnvironmentError& error) {
    return std::string(error.what()) +
           "; all results are stored; once its owner has removed it, or given it to you, `pipe "
           "clean --runs` removes the rest";
  }
}

/// Waits, unless the run is stopped.
async::Task<> Run::pause(Duration delay) {
  asio::steady_timer timer(executor_, delay);
  const core::CancelSource::Listener listener(stop_, [&](core::StopLevel) { timer.cancel(); });
  if (stop_.level() != core::StopLevel::none) co_return;
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

Reuse Run::reuse(core::StepIndex i, store::CacheEntry entry) {
  if (results_.may_be_unsent(spec(i), entry)) spawn(results_.send(entry));
  states_[i].outputs = entry.outputs;
  states_[i].status = StepStatus::cached;
  scheduler_.succeeded(i);
  return {&spec(i), std::move(entry)};
}

void Run::fail(core::StepIndex i, Failure failure, const std::string& key,
               const AttemptCounts& counts) {
  const bool cancelled = failure.kind == FailureKind::cancelled;
  const auto status = cancelled ? StepStatus::cancelled : StepStatus::failed;
  std::vector<const StepSpec*> lost;
  states_[i].status = status;
  for (const auto dependent : scheduler_.failed(i)) {
    states_[dependent].status = StepStatus::skipped;
    lost.push_back(&spec(dependent));
  }
  journal_.failed(spec(i), std::move(failure), key, counts, lost);
  if (cancelled || pipeline_.execution_mode == ExecutionMode::continue_on_failure) return;
  if (stopped_by_.empty()) stopped_by_ = spec(i).name;
  if (pipeline_.execution_mode == ExecutionMode::fail_fast) stop_.stop(core::StopLevel::graceful);
}

/// What never had its turn, because the run was stopped.
void Run::finish_rest() {
  const bool by_user = user_.level() != core::StopLevel::none;
  const std::string mode =
      pipeline_.execution_mode == ExecutionMode::fail_fast ? "fail_fast" : "stop_on_failure";
  journal_.left_out(
      specs(StepStatus::pending),
      by_user ? "the run was interrupted"
              : "not started, since '" + stopped_by_ + "' failed (execution_mode: " + mode + ")",
      by_user ? StepStatus::cancelled : StepStatus::skipped);
}

}  // namespace

async::Task<RunSummary> run(const PipelineSpec& pipeline, orchestrators::Orchestrator& orchestrator,
                            store::RunStore& runs, store::ArtifactStore& artifacts,
                            store::StatIndex& stats, const CodeProvider& code, EventSink& events,
                            core::CancelSource& cancel, RunOptions options) {
  Run run(pipeline, orchestrator, runs, artifacts, stats, code, events, cancel, std::move(options),
          co_await asio::this_coro::executor);
  co_return co_await run.execute();
}

async::Task<> prepare_detached(const PipelineSpec& pipeline,
                               orchestrators::Orchestrator& orchestrator, store::RunStore& runs,
                               store::ArtifactStore& artifacts, store::StatIndex& stats,
                               const CodeProvider& code, EventSink& events,
                               core::CancelSource& cancel, RunOptions options) {
  Run run(pipeline, orchestrator, runs, artifacts, stats, code, events, cancel, std::move(options),
          co_await asio::this_coro::executor);
  co_await run.prepare_detached();
}

}  // namespace pipeline::engine
