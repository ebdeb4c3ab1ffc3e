#include "engine/run.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "async/pair_of_threads.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/joined.hpp"
#include "core/text.hpp"
#include "engine/cache/run_fingerprint.hpp"
#include "engine/gpu/gpu_reserver.hpp"
#include "engine/run/environments.hpp"
#include "engine/run/equal_steps.hpp"
#include "engine/run/output_recovery.hpp"
#include "engine/run/questions.hpp"
#include "engine/run/remains.hpp"
#include "engine/run/run_checks.hpp"
#include "engine/run/step_outcomes.hpp"
#include "engine/run/step_runner.hpp"
#include "engine/run/steps_in_progress.hpp"
#include "orchestrators/failure_of.hpp"

namespace pipeline::engine {
namespace {

/// Carries out the decisions of the walk: starts steps, and records how they end. Events are
/// persisted before they are published. All coroutines of the run are tasks of `tasks_`; they end
/// before execute() returns.
class Run final : public StepStarter {
 public:
  Run(const Services& services, EventSink& events, core::CancelSource& user_stop,
      EngineOptions options, asio::any_io_executor executor)
      : services_(services),
        pipeline_(services.pipeline),
        routes_(services.routes),
        options_(std::move(options)),
        wake_(executor),
        tasks_(executor, [this](const std::exception_ptr& error) { task_ended(error); }),
        context_{services_, options_, events, user_stop, pool_, executor, tasks_},
        open_files_(max_open_files(pipeline_, routes_)),
        slots_(slots_for(options_.jobs, open_files_)),
        results_(context_),
        walk_(context_, results_),
        steps_(walk_.steps()),
        scheduler_(walk_.scheduler()),
        environments_(context_, steps_.size(),
                      [this](model::StepIndex i) { environment_failed(i); }),
        gpus_(context_, slots_.local),
        in_progress_(routes_, gpus_, slots_),
        equal_steps_(context_),
        journal_(services_.store, services_.artifacts, events, pipeline_, options_),
        outcomes_(context_, walk_, journal_, results_, stop_),
        runner_(context_, journal_, slots_, gpus_, results_),
        recovery_(
            context_, steps_,
            [this](model::StepIndex i) {
              return run_step(i, std::nullopt, in_progress_.add(spec(i)));
            },
            [this](model::StepIndex i) {
              return results_.download_again(spec(i), current_key(i).key, steps_[i].outputs);
            }) {
    for (model::StepIndex i = 0; i < steps_.size(); ++i)
      has_final_steps_ |= spec(i).run_on != RunOn::success;
    if (!options_.identity.empty() && options_.use_cache)
      fingerprint_.emplace(options_.identity, options_.now);
  }

  async::Task<RunSummary> execute();
  async::Task<> prepare_detached();

  bool may_start() const override {
    return stop_.level() == core::StopLevel::none && (!outcomes_.has_stopped() || has_final_steps_);
  }
  bool excludes(model::StepIndex i) override { return outcomes_.skip_if_stopped(i); }
  std::optional<std::size_t> queue_of(model::StepIndex i) override {
    return in_progress_.queue_of(spec(i));
  }
  bool has_room(std::size_t queue) const override { return in_progress_.has_room(queue); }
  void take(model::StepIndex i, Decision decision) override;
  void fail(model::StepIndex i, const core::EnvironmentError& error) override {
    outcomes_.fail(i, orchestrators::failure_of(error));
  }
  void fail(model::StepIndex i, Failure failure) override { outcomes_.fail(i, std::move(failure)); }
  void leave_open(model::StepIndex i, const std::string& reason) override {
    outcomes_.fail(i, Failure{FailureKind::not_started, reason, {}, {}});
  }
  void expanded(const std::vector<const StepSpec*>& steps,
                std::pair<model::StepIndex, std::size_t> instances,
                std::optional<unsigned> round) override;
  void end_instances(model::StepIndex i) override { outcomes_.end_instances(i); }
  async::Task<bool> wait() override;

 private:
  const StepSpec& spec(model::StepIndex i) const { return steps_.spec(i); }
  StepKey current_key(model::StepIndex i) {
    return results_.keys().key(spec(i), environments_.of(i), steps_.outputs_of());
  }
  /// Returns the source that ends the step: steps with a `run_on` are not stopped by fail_fast.
  core::CancelSource& stop_of(model::StepIndex i) {
    return spec(i).run_on == RunOn::success ? stop_ : context_.user_stop;
  }
  void task_ended(const std::exception_ptr& error);
  async::Task<> prefetch();
  void start(model::StepIndex i, std::optional<StepKey> key,
             orchestrators::Environment environment);
  async::Task<> run_step(model::StepIndex i, std::optional<StepKey> key,
                         StepsInProgress::Place place);
  async::Task<AttemptOutcome> run_attempts(model::StepIndex i, WaitMeter& waits, StepKey& key,
                                           AttemptCounts& counts);
  async::Task<StepKey> key_to_run_again(model::StepIndex i, AttemptCounts& counts);
  async::Task<bool> find_result(model::StepIndex i, std::optional<StepKey>& key, WaitMeter& waits);
  async::Task<bool> find_remote_result(model::StepIndex i, const StepKey& key);
  void environment_failed(model::StepIndex i);
  void show_notices(model::StepIndex i);
  bool may_be_remote(model::StepIndex i) const {
    return results_.may_be_remote(spec(i), steps_[i].resume_point.has_value());
  }

  void save_fingerprint();

  const Services services_;
  const PipelineSpec& pipeline_;
  orchestrators::Routes& routes_;
  const EngineOptions options_;
  async::Gate wake_;  ///< Open when the walk may have something to do.
  async::PairOfThreads pool_;
  core::CancelSource stop_;  ///< Stopped by the user or by fail_fast.
  async::TaskGroup tasks_;
  const RunContext context_;
  const unsigned open_files_;  ///< Maximum number of files that an attempt holds open.
  JobSlots slots_;
  Results results_;
  GraphWalk walk_;
  RunSteps& steps_;
  model::Scheduler& scheduler_;
  Environments environments_;
  GpuReserver gpus_;
  StepsInProgress in_progress_;
  EqualSteps equal_steps_;
  Journal journal_;
  StepOutcomes outcomes_;
  StepRunner runner_;
  OutputRecovery recovery_;
  bool has_final_steps_ = false;    ///< Steps with a `run_on`, which may run after a failure.
  std::exception_ptr fatal_;        ///< The store itself failed, so nothing more can be recorded.
  std::set<std::string> reported_;  ///< Notices, each shown once a run.
  std::optional<RunFingerprint> fingerprint_;
  bool has_prefetched_ = false;
  bool has_begun_ = false;  ///< The run is recorded.
};

async::Task<> Run::prepare_detached() {
  const auto steps = steps_.with_status(StepStatus::pending);
  for (const auto* step : steps)
    if (!step->wait.empty())
      throw core::InputError("step '" + step->name +
                                 "' has a `wait`, and nobody can answer a driver that is elsewhere",
                             "run it without --detach, or leave `wait` out");
  for (const auto* step : steps)
    if (!step->publish_to.empty())
      throw core::InputError("step '" + step->name +
                                 "' has a `publish_to`, which names a folder of this machine, and "
                                 "the driver of a detached run is elsewhere",
                             "run it without --detach, or leave `publish_to` out");
  co_await check_run(context_, results_, gpus_, steps);
  const core::CancelSource::Listener builds(
      context_.user_stop, [this](core::StopLevel level) { environments_.stop_all(level); });
  for (model::StepIndex i = 0; i < steps_.size(); ++i) environments_.begin(i, spec(i));
  co_await tasks_.join();
  co_await routes_.settle();
  if (fatal_) std::rethrow_exception(fatal_);
  environments_.rethrow();
  journal_.run_began(routes_.names_of(steps), steps, results_.data().current_versions(steps));
}

async::Task<RunSummary> Run::execute() {
  const auto steps = steps_.with_status(StepStatus::pending);
  // Comes first, so that the next run notices whatever changes from here on.
  if (fingerprint_) look_at_sources(*fingerprint_, services_, options_.sources, steps);
  co_await check_run(context_, results_, gpus_, steps);
  if (options_.resume) {
    for (auto& [step, resume_point] : journal_.run_resumed(routes_.names_of(steps), steps))
      steps_.state_of(step).resume_point = std::move(resume_point);
  } else {
    journal_.run_began(routes_.names_of(steps), steps, results_.data().current_versions(steps));
  }
  has_begun_ = true;
  if (const auto max_jobs = max_attempts(open_files_); options_.jobs > max_jobs)
    context_.events.emit(event::Notice{
        "", core::counted(max_jobs, "step") + " at a time instead of " +
                std::to_string(options_.jobs) +
                ": there is no room for more under this limit of open files (ulimit -n)"});
  const core::CancelSource::Listener listener(context_.user_stop, [this](core::StopLevel level) {
    environments_.stop_all(level);
    stop_.stop(level);
    wake_.open();
  });
  const core::CancelSource::Listener builds(
      stop_, [this](core::StopLevel level) { environments_.stop(level); });
  try {
    co_await walk_.run(*this);
    const auto is_stopped_by_failure = [this] {
      return stop_.level() != core::StopLevel::none &&
             context_.user_stop.level() == core::StopLevel::none && !fatal_;
    };
    // In the mode fail_fast, a failure has ended the walk: the steps with a `run_on` run now.
    while (has_final_steps_ && scheduler_.has_ready() && is_stopped_by_failure()) {
      stop_.rearm();
      environments_.rearm();
      co_await walk_.run(*this);
    }
  } catch (...) {
    fatal_ = std::current_exception();
  }
  if (fatal_) stop_.stop(core::StopLevel::graceful);
  co_await tasks_.join();
  co_await routes_.settle();
  const auto left = remove_work_folders(context_, journal_.run_id());
  if (fatal_) std::rethrow_exception(fatal_);
  if (!left.empty()) context_.events.emit(event::Notice{"", left});
  outcomes_.skip_remaining(context_.user_stop.level() != core::StopLevel::none);
  results_.conclude();
  co_await outcomes_.temp_outputs().run_ended(steps_.with_status(StepStatus::failed).empty() &&
                                              stop_.level() == core::StopLevel::none);
  services_.stats.save();
  if (outcomes_.result_folders().has_failed()) journal_.lacks_copies();
  auto summary = journal_.run_ended(context_.user_stop.level() != core::StopLevel::none);
  if (options_.resume) co_await remove_orphans(context_);
  // A run succeeds although a step with `allow_failure` has failed.
  const bool has_no_failure = summary.status == RunStatus::succeeded && summary.failed == 0;
  if (fingerprint_ && has_no_failure && results_.has_published()) save_fingerprint();
  co_return summary;
}

/// Waits until a step has ended, or the run is stopped.
async::Task<bool> Run::wait() {
  journal_.flush_reused();
  // With a remote cache, find_remote_result() calls prefetch() once a step is known to run.
  if (!results_.has_remote_cache() || !options_.use_cache) co_await prefetch();
  if (tasks_.is_empty() && !(scheduler_.has_ready() && may_start() && !fatal_)) co_return false;
  // Builds in progress are no longer needed.
  if (scheduler_.done()) environments_.stop_all(core::StopLevel::immediate);
  co_await wake_.wait();
  wake_.close();
  co_return true;
}

void Run::save_fingerprint() {
  std::set<std::string> seen;
  std::size_t skipped = 0, expanded = 0;
  for (model::StepIndex i = 0; i < steps_.size(); ++i) {
    if (steps_[i].instances) {
      ++expanded;
      continue;
    }
    if (steps_[i].status == StepStatus::skipped) {
      ++skipped;  // Skipped by a condition over parameters and artifacts, which stay the same.
      continue;
    }
    if (const auto environment = routes_.fingerprint_of(spec(i), environments_.of(i));
        seen.insert(environment).second)
      fingerprint_->add_environment(environment);
    for (const auto& output : steps_[i].outputs)
      if (!output.temp) fingerprint_->add_artifact(output.digest);
  }
  for (const auto& copy : outcomes_.result_folders().copies()) fingerprint_->add_path(copy);
  if (options_.final_sources) {
    const auto sources = options_.final_sources();
    if (!sources) fingerprint_->invalidate();
    for (const auto& path : sources.value_or(std::vector<std::filesystem::path>()))
      fingerprint_->add_path(path);
  }
  fingerprint_->save(services_.store, journal_.run_id(), steps_.size() - expanded, skipped,
                     pipeline_.tags);
}

void Run::take(model::StepIndex i, Decision decision) {
  if (decision.action == Decision::Action::skip) return outcomes_.skip(i, decision.reason);
  if (decision.error.empty() && !decision.condition.empty())
    decision.error = decision.condition + ": an output that it names is gone";
  if (!decision.error.empty())
    return outcomes_.fail(i, Failure{FailureKind::not_started, std::move(decision.error), {}, {}});
  if (decision.action == Decision::Action::reuse) {
    environments_.set(i, std::move(decision.environment));
    outcomes_.reuse(i, std::move(decision.entry));
  } else {
    start(i, std::move(decision.key), std::move(decision.environment));
  }
}

void Run::expanded(const std::vector<const StepSpec*>& steps,
                   std::pair<model::StepIndex, std::size_t> instances,
                   std::optional<unsigned> round) {
  environments_.grow(steps_.size());
  std::vector<const StepSpec*> made;
  for (auto i = instances.first; i < instances.first + instances.second; ++i)
    made.push_back(&spec(i));
  for (auto& [name, point] : journal_.expanded(steps, made, round))
    steps_.state_of(name).resume_point = std::move(point);
}

/// Prepares the environments of later steps while the first ones run.
async::Task<> Run::prefetch() {
  if (tasks_.is_empty() || std::exchange(has_prefetched_, true)) co_return;
  for (model::StepIndex i = 0; i < steps_.size() && stop_.level() == core::StopLevel::none; ++i) {
    if (steps_[i].status != StepStatus::pending || environments_.is_begun(i) ||
        is_conditional(spec(i)))
      continue;
    bool is_ready = true;
    try {
      is_ready = (co_await routes_.of(spec(i)).environment(spec(i))).ready;
    } catch (const core::EnvironmentError&) {  // Reported when the step is started.
    }
    if (!is_ready && !environments_.is_begun(i)) environments_.begin(i, spec(i));
  }
}

void Run::start(model::StepIndex i, std::optional<StepKey> key,
                orchestrators::Environment environment) {
  steps_[i].status = StepStatus::running;
  if (environment.ready && key)
    environments_.set(i, std::move(environment));
  else if (!environments_.is_begun(i) && !(key && may_be_remote(i)))
    environments_.begin(i, spec(i));
  tasks_.spawn(run_step(i, std::move(key), in_progress_.add(spec(i))));
}

void Run::task_ended(const std::exception_ptr& error) {
  if (error && !fatal_) {
    fatal_ = error;
    stop_.stop(core::StopLevel::graceful);
  }
  wake_.open();
}

/// Runs a step whose turn it is, or a step that has ended and must run again.
async::Task<> Run::run_step(model::StepIndex i, std::optional<StepKey> key,
                            StepsInProgress::Place place) {
  const auto held = std::move(place);
  AttemptCounts counts;
  WaitMeter waits;
  std::optional<Failure> failure;
  std::shared_ptr<const void> key_lock;
  try {
    if (scheduler_.is_gone(i)) {
      key = co_await key_to_run_again(i, counts);
    } else {
      const bool has_result = co_await find_result(i, key, waits);
      if (has_result) co_return;
      waits.add("store");
      show_notices(i);
      // While the step waits for an answer, `pipe` shows that the steps before it have ended.
      if (!spec(i).wait.empty()) journal_.flush_reused();
      failure = co_await ask_person(context_, spec(i), stop_of(i));
      waits.add("answer");
      if (failure) co_return outcomes_.fail(i, std::move(*failure), key->key, counts);
      bool has_waited = false;
      if (results_.may_be_reused(spec(i)))
        key_lock = co_await equal_steps_.acquire(spec(i), key->key, stop_of(i), has_waited);
      if (auto entry = has_waited ? results_.find_local(spec(i), key->key) : std::nullopt)
        co_return outcomes_.reuse(i, std::move(*entry));
    }
    waits.add("step");
    const bool is_stopped = stop_of(i).level() != core::StopLevel::none;
    const bool is_restored = !is_stopped && co_await recovery_.restore_inputs(i);
    if (is_restored) key = current_key(i);
    auto outcome = co_await run_attempts(i, waits, *key, counts);
    failure = outcome.result.failure;
    outcome.key_lock = key_lock;
    if (!failure) {
      const auto ran = results_.keys().as_it_ran(*key, outcome.code, outcome.code_files);
      if (ran.key != key->key)
        context_.events.emit(event::Notice{
            spec(i).name, "ran code that has changed since the run began: " +
                              core::joined(differences(key->parts, ran.parts), ", ")});
      outcomes_.succeed(i, ran, std::move(outcome), counts);
      co_return;
    }
  } catch (const core::EnvironmentError& error) {
    failure = orchestrators::failure_of(error);
  }
  if (stop_of(i).level() != core::StopLevel::none && counts.attempts == 0 &&
      !environments_.has_failed(i))
    failure = Failure{FailureKind::cancelled, "cancelled before it started", {}, {}};
  outcomes_.fail(i, std::move(*failure), key ? key->key : "", counts);
}

/// Runs the step. If an output of an earlier step turns out to be damaged, runs that step again,
/// once, and then this one with the new output.
async::Task<AttemptOutcome> Run::run_attempts(model::StepIndex i, WaitMeter& waits, StepKey& key,
                                              AttemptCounts& counts) {
  std::set<std::string> remade;
  for (;;) {
    const auto& point = steps_[i].resume_point;
    const auto renew_key = [&] {
      return recovery_.has_rerun_any() && std::exchange(key, current_key(i)).key != key.key;
    };
    const ReadyStep step{.spec = spec(i),
                         .key = key.key,
                         .renew_key = renew_key,
                         .environment = environments_.of(i),
                         .waits = waits,
                         .urgency = scheduler_.urgency(i),
                         .resume_point = point && counts.attempts == 0 ? &*point : nullptr,
                         .outputs_of = steps_.outputs_of(),
                         .stop = stop_of(i)};
    std::optional<DamagedInput> damaged;
    try {
      auto outcome = co_await runner_.run(step, counts);
      co_return outcome;
    } catch (const DamagedInput& error) {
      if (!remade.insert(error.producer()).second) throw;
      damaged = error;
    }
    journal_.retried(spec(i), counts.attempts, orchestrators::failure_of(*damaged), Retry{});
    co_await recovery_.make_again(steps_.producer(damaged->producer()), *damaged,
                                  "because its output is damaged");
    key = current_key(i);
    waits.restart();
  }
}

async::Task<StepKey> Run::key_to_run_again(model::StepIndex i, AttemptCounts& counts) {
  counts.attempts = journal_.restarted(spec(i), steps_[i].status);
  environments_.begin(i, spec(i));
  co_await environments_.prepared(i);
  co_return current_key(i);
}

/// In the mode fail_fast, fails at once a step that has not begun. A step that has begun, or
/// another mode, leaves the report to run_step().
void Run::environment_failed(model::StepIndex i) {
  if (!has_begun_ || pipeline_.execution_mode != ExecutionMode::fail_fast ||
      steps_[i].status != StepStatus::pending)
    return;
  try {
    environments_.rethrow(i);
  } catch (const core::EnvironmentError& error) {
    fail(i, error);
  }
}

/// Looks for the step's result on this machine and in the remote cache. Returns false if there is
/// none; the step's environment is then ready, and `key` is set.
async::Task<bool> Run::find_result(model::StepIndex i, std::optional<StepKey>& key,
                                   WaitMeter& waits) {
  const bool has_key = key.has_value();
  if (has_key) {
    const bool is_remote = co_await find_remote_result(i, *key);
    if (is_remote) co_return true;
    waits.add("store");
    if (!environments_.is_begun(i)) environments_.begin(i, spec(i));
  }
  co_await environments_.prepared(i);
  waits.add("image");
  if (has_key) co_return false;
  key = current_key(i);
  if (auto entry = results_.find_local(spec(i), key->key)) {
    outcomes_.reuse(i, std::move(*entry));
    co_return true;
  }
  const bool is_remote = co_await find_remote_result(i, *key);
  co_return is_remote;
}

async::Task<bool> Run::find_remote_result(model::StepIndex i, const StepKey& key) {
  std::optional<store::CacheEntry> entry;
  if (may_be_remote(i)) entry = co_await results_.fetch_remote(spec(i), key);
  if (!entry) {
    // Now a step is known to run, so that the environments of later steps are worth preparing.
    if (results_.has_remote_cache() && !has_prefetched_) tasks_.spawn(prefetch());
    co_return false;
  }
  outcomes_.reuse(i, std::move(*entry));
  co_return true;
}

void Run::show_notices(model::StepIndex i) {
  for (const auto& notice : environments_.of(i).notices)
    if (reported_.insert(notice).second) context_.events.emit(event::Notice{spec(i).name, notice});
}

}  // namespace

async::Task<RunSummary> run(Services services, EventSink& events, core::CancelSource& cancel,
                            EngineOptions options) {
  Run run(services, events, cancel, std::move(options), co_await asio::this_coro::executor);
  co_return co_await run.execute();
}

async::Task<> prepare_detached(Services services, EventSink& events, core::CancelSource& cancel,
                               EngineOptions options) {
  Run run(services, events, cancel, std::move(options), co_await asio::this_coro::executor);
  co_await run.prepare_detached();
}

}  // namespace pipeline::engine
