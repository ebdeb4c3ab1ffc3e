#include "engine/run.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "async/gate.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "engine/cache/results.hpp"
#include "engine/cache/run_fingerprint.hpp"
#include "engine/gpu/gpu_pool.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run/environments.hpp"
#include "engine/run/journal.hpp"
#include "engine/run/run_checks.hpp"
#include "engine/run/step_endings.hpp"
#include "engine/run/step_runner.hpp"
#include "orchestrators/failure_of.hpp"

namespace pipeline::engine {
namespace {

/// A cluster has a queue of its own, but each attempt there costs this driver a connection for its
/// log.
constexpr unsigned most_elsewhere = 100;

/// Events are persisted before they are published.
class Run {
 public:
  Run(const Services& services, EventSink& events, core::CancelSource& user, EngineOptions options,
      asio::any_io_executor executor)
      : services_(services),
        pipeline_(services.pipeline),
        orchestrator_(services.orchestrator),
        events_(events),
        user_(user),
        options_(std::move(options)),
        steps_(pipeline_, options_.only_step),
        scheduler_(steps_.graph(), steps_.final_steps()),
        executor_(executor),
        wake_(executor),
        slots_{.here = async::Semaphore(options_.jobs
                                            ? options_.jobs
                                            : std::max(1u, std::thread::hardware_concurrency())),
               .elsewhere = async::Semaphore(options_.jobs ? options_.jobs : most_elsewhere)},
        pool_(2),
        results_(services_, events, user, pool_, options_),
        environments_(executor, services_, events, results_.has_store(), steps_.size(), spawner(),
                      [this](model::StepIndex i) { environment_failed(i); }),
        gpus_(executor, pool_, orchestrator_, events, user, slots_.here, options_, spawner()),
        journal_(services_.runs, services_.artifacts, events, pipeline_, options_),
        checks_(services_, steps_, environments_, results_, gpus_, pool_, options_, events, user),
        endings_(pipeline_, services_.artifacts, steps_, scheduler_, journal_, results_, stop_,
                 spawner()),
        runner_(services_, events, stop_, journal_, pool_, slots_, gpus_, results_),
        final_runner_(services_, events, user, journal_, pool_, slots_, gpus_, results_) {
    for (model::StepIndex i = 0; i < steps_.size(); ++i)
      has_final_steps_ |= spec(i).run_on != RunOn::success;
    if (!options_.identity.empty() && options_.use_cache) fingerprint_.emplace(options_.identity);
  }

  async::Task<RunSummary> execute();
  async::Task<> prepare_detached();

 private:
  const StepSpec& spec(model::StepIndex i) const { return steps_.spec(i); }
  std::string places(const std::vector<const StepSpec*>& steps) const;
  std::function<void(async::Task<>)> spawner() {
    return [this](async::Task<> task) { spawn(std::move(task)); };
  }

  async::Task<> run_steps();
  bool may_start() const {
    return stop_.level() == core::StopLevel::none && (!endings_.has_stopped() || has_final_steps_);
  }
  async::Task<> start_ready_steps();
  void grow(std::vector<Reuse>& hits);
  void expand(const std::vector<model::StepIndex>& steps);
  void end_or_repeat(model::StepIndex i);
  void begin_round(model::StepIndex i);
  async::Task<> prefetch();
  async::Task<> coroutines_end();
  void spawn(async::Task<> task);
  void start(model::StepIndex i, std::optional<StepKey> key,
             orchestrators::Environment environment);
  async::Task<> run_step(model::StepIndex i, std::optional<StepKey> key);
  async::Task<bool> is_made(model::StepIndex i, std::optional<StepKey>& key);
  async::Task<bool> is_made_elsewhere(model::StepIndex i, const StepKey& key);
  void environment_failed(model::StepIndex i);
  void show_notices(model::StepIndex i);
  bool may_be_elsewhere(model::StepIndex i) const {
    return results_.may_be_elsewhere(spec(i), steps_[i].resume_point.has_value());
  }

  async::Task<> remove_rest();
  std::string remove_work();
  void remember();

  const Services services_;
  const PipelineSpec& pipeline_;
  orchestrators::Orchestrator& orchestrator_;
  EventSink& events_;
  core::CancelSource& user_;
  EngineOptions options_;
  RunSteps steps_;
  model::Scheduler scheduler_;
  asio::any_io_executor executor_;
  async::Gate wake_;
  JobSlots slots_;
  asio::thread_pool pool_;
  core::CancelSource stop_;  ///< Stopped by the user or by fail_fast.
  Results results_;
  Environments environments_;
  GpuPool gpus_;
  Journal journal_;
  RunChecks checks_;
  StepEndings endings_;
  StepRunner runner_;
  StepRunner final_runner_;  ///< For steps with a `run_on`, which fail_fast does not stop.
  bool has_final_steps_ = false;
  std::size_t active_ = 0;
  std::exception_ptr fatal_;        ///< The store itself failed, so nothing more can be recorded.
  std::set<std::string> reported_;  ///< Notices, each shown once a run.
  std::optional<RunFingerprint> fingerprint_;
  bool has_prefetched_ = false;
  bool has_begun_ = false;  ///< The run is recorded.
};

/// Returns `docker`, or for a run with several orchestrators `local, kubernetes`.
std::string Run::places(const std::vector<const StepSpec*>& steps) const {
  std::string names;
  std::set<std::string_view> seen;
  for (const auto* step : steps)
    if (const std::string& name = orchestrator_.capabilities_of(*step).name;
        seen.insert(name).second)
      names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? orchestrator_.capabilities().name : names;
}

async::Task<> Run::prepare_detached() {
  const auto steps = steps_.with(StepStatus::pending);
  co_await checks_.check(steps);
  const core::CancelSource::Listener builds(
      user_, [this](core::StopLevel level) { environments_.stop_all(level); });
  for (model::StepIndex i = 0; i < steps_.size(); ++i) environments_.begin(i, spec(i));
  co_await coroutines_end();
  co_await orchestrator_.settle();
  if (fatal_) std::rethrow_exception(fatal_);
  environments_.rethrow();
  journal_.run_began(places(steps), steps);
}

/// Waits for all coroutines, because they refer to this object.
async::Task<> Run::coroutines_end() {
  while (active_ > 0) {
    wake_.close();
    co_await wake_.wait();
  }
}

async::Task<RunSummary> Run::execute() {
  const auto steps = steps_.with(StepStatus::pending);
  // Before what takes long: what changes from here on is noticed by the next run.
  if (fingerprint_) look_at_sources(*fingerprint_, services_, options_.sources, steps);
  co_await checks_.check(steps);
  if (options_.resume) {
    for (auto& [step, resume_point] : journal_.run_resumed(places(steps), steps))
      steps_.state_of(step).resume_point = std::move(resume_point);
  } else {
    journal_.run_began(places(steps), steps);
  }
  has_begun_ = true;
  const core::CancelSource::Listener listener(user_, [this](core::StopLevel level) {
    environments_.stop_all(level);
    stop_.stop(level);
    wake_.open();
  });
  const core::CancelSource::Listener builds(
      stop_, [this](core::StopLevel level) { environments_.stop(level); });
  try {
    co_await run_steps();
    // fail_fast has stopped the others.
    while (has_final_steps_ && scheduler_.has_ready() && stop_.level() != core::StopLevel::none &&
           user_.level() == core::StopLevel::none && !fatal_) {
      stop_.rearm();
      environments_.rearm();
      co_await run_steps();
    }
  } catch (...) {
    fatal_ = std::current_exception();
  }
  if (fatal_) stop_.stop(core::StopLevel::graceful);
  co_await coroutines_end();
  co_await orchestrator_.settle();
  const auto left = remove_work();
  if (fatal_) std::rethrow_exception(fatal_);
  if (!left.empty()) events_.emit(event::Notice{"", left});
  endings_.finish_rest(user_.level() != core::StopLevel::none);
  results_.conclude();
  services_.stats.save();
  auto summary = journal_.run_ended(user_.level() != core::StopLevel::none);
  if (options_.resume) co_await remove_rest();
  if (fingerprint_ && summary.status == RunStatus::succeeded && results_.has_published())
    remember();
  co_return summary;
}

async::Task<> Run::run_steps() {
  co_await start_ready_steps();
  if (!results_.has_store() || !options_.use_cache)
    co_await prefetch();  // Otherwise it is called once a step is known to run.
  while (active_ > 0 || (scheduler_.has_ready() && may_start() && !fatal_)) {
    // Builds in progress are no longer needed.
    if (scheduler_.done()) environments_.stop_all(core::StopLevel::immediate);
    co_await wake_.wait();
    wake_.close();
    co_await start_ready_steps();
  }
}

void Run::remember() {
  std::set<std::string> rechecks;
  std::size_t skipped = 0, expanded = 0;
  for (model::StepIndex i = 0; i < steps_.size(); ++i) {
    if (steps_[i].instances) {
      ++expanded;
      continue;
    }
    if (steps_[i].status == StepStatus::skipped) {
      ++skipped;  // By a condition over parameters and artifacts, which stay the same.
      continue;
    }
    if (const auto& recheck = environments_.of(i).recheck; rechecks.insert(recheck).second)
      fingerprint_->ran_in(recheck);
    for (const auto& output : steps_[i].outputs) fingerprint_->made(output.digest);
  }
  if (options_.final_sources) {
    const auto sources = options_.final_sources();
    if (!sources) fingerprint_->invalidate();
    for (const auto& path : sources.value_or(std::vector<std::filesystem::path>()))
      fingerprint_->looked_at(path);
  }
  fingerprint_->save(services_.runs, journal_.run_id(), steps_.size() - expanded, skipped,
                     pipeline_.tags);
}

/// Takes every ready step: reuses it at once, or starts it.
async::Task<> Run::start_ready_steps() {
  std::vector<Reuse> hits;
  while (may_start()) {
    grow(hits);
    const auto i = scheduler_.take();
    if (!i) break;
    std::optional<Failure> failure;
    try {
      if (steps_[*i].instances || steps_.leads_rounds(*i)) {
        journal_.reused(std::exchange(hits, {}));
        end_or_repeat(*i);
        continue;
      }
      if (is_conditional(spec(*i)) || endings_.has_stopped()) {
        journal_.reused(std::exchange(hits, {}));
        if (endings_.leaves_out(*i)) continue;
      }
      auto environment = co_await environments_.look_up(spec(*i));
      if (scheduler_.is_gone(*i)) continue;  // Its environment could not be prepared meanwhile.
      std::optional<StepKey> key;
      if (!environment.id.empty())
        key = results_.key(spec(*i), environment.id, steps_.outputs_of());
      if (auto entry = key ? results_.here(spec(*i), key->key) : std::nullopt) {
        environments_.set(*i, std::move(environment));
        hits.push_back(endings_.reuse(*i, std::move(*entry)));
      } else {
        journal_.reused(std::exchange(hits, {}));
        start(*i, std::move(key), std::move(environment));
      }
    } catch (const core::EnvironmentError& error) {
      failure = orchestrators::failure_of(error);
    }
    if (failure) endings_.fail(*i, std::move(*failure), {}, {});
  }
  journal_.reused(hits);
}

/// Makes the instances of the steps whose matrices are known by now.
void Run::grow(std::vector<Reuse>& hits) {
  for (auto steps = steps_.take_open_matrix(); !steps.empty(); steps = steps_.take_open_matrix()) {
    journal_.reused(std::exchange(hits, {}));
    std::optional<Failure> failure;
    try {
      expand(steps);
    } catch (const core::InputError& error) {
      const auto& wrong = error.diagnostics().front();
      failure = Failure{FailureKind::not_started, "matrix: " + wrong.message, {}, {}};
      if (!wrong.suggestion.empty()) failure->hints.push_back(wrong.suggestion);
    } catch (const core::EnvironmentError& error) {
      failure = orchestrators::failure_of(error);
    }
    if (!failure) continue;
    for (const auto i : steps)
      if (steps_[i].status == StepStatus::pending) endings_.fail(i, *failure, {}, {});
  }
}

/// @param steps those that share one matrix
void Run::expand(const std::vector<model::StepIndex>& steps) {
  const auto needs = steps_.expand(steps, services_.artifacts);
  environments_.grow(steps_.size());
  for (std::size_t k = 0; k < steps.size(); ++k) {
    scheduler_.grow(steps[k], needs[k]);
    const auto [first, count] = *steps_[steps[k]].instances;
    std::vector<const StepSpec*> instances;
    for (auto i = first; i < first + count; ++i) instances.push_back(&spec(i));
    for (auto& [name, point] : journal_.expanded({&spec(steps[k])}, instances))
      steps_.state_of(name).resume_point = std::move(point);
  }
}

/// Ends a step that is its instances, or begins the next round of steps that are repeated.
void Run::end_or_repeat(model::StepIndex i) {
  if (!steps_.leads_rounds(i)) return endings_.end_instances(i);
  if (steps_[i].instances) {
    if (steps_.outcome_of_instances(i).first != Outcome::made) return endings_.end_instances(i);
    const auto is_last = steps_.is_last_round(i, services_.artifacts);
    if (!is_last.value) {
      auto why = is_last.error.empty() ? "until: an output that it names is gone" : is_last.error;
      return endings_.fail(i, Failure{FailureKind::not_started, std::move(why), {}, {}}, {}, {});
    }
    if (is_last.value == true) {
      if (!is_last.reason.empty())
        events_.emit(event::Notice{spec(i).name, "no further round after " +
                                                     std::to_string(steps_.rounds(i)) +
                                                     ", the most allowed: " + is_last.reason});
      steps_.end_rounds(i);
      return endings_.end_instances(i);
    }
  }
  if (!endings_.leaves_out(i)) begin_round(i);
}

void Run::begin_round(model::StepIndex i) {
  const auto round = steps_.rounds(i);
  const auto first = static_cast<model::StepIndex>(steps_.size());
  scheduler_.grow(i, steps_.add_round(i));
  environments_.grow(steps_.size());
  std::vector<const StepSpec*> steps;
  for (auto k = first; k < steps_.size(); ++k) steps.push_back(&spec(k));
  for (auto& [name, point] : journal_.expanded(steps_.repeated_with(i), steps, round))
    steps_.state_of(name).resume_point = std::move(point);
}

/// Prepares the environments of later steps while the first ones run.
async::Task<> Run::prefetch() {
  if (active_ == 0 || std::exchange(has_prefetched_, true)) co_return;
  for (model::StepIndex i = 0; i < steps_.size() && stop_.level() == core::StopLevel::none; ++i) {
    if (steps_[i].status != StepStatus::pending || environments_.is_begun(i) ||
        is_conditional(spec(i)))
      continue;
    bool is_ready = true;
    try {
      is_ready = (co_await orchestrator_.environment(spec(i))).ready;
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
  else if (!environments_.is_begun(i) && !(key && may_be_elsewhere(i)))
    environments_.begin(i, spec(i));
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

async::Task<> Run::run_step(model::StepIndex i, std::optional<StepKey> key) {
  AttemptCounts counts;
  const auto ready = Clock::now();
  std::optional<Failure> failure;
  try {
    const bool has_result = co_await is_made(i, key);
    if (has_result) co_return;
    show_notices(i);
    const auto& point = steps_[i].resume_point;
    const ReadyStep step{.spec = spec(i),
                         .key = key->key,
                         .environment = environments_.of(i),
                         .since = ready,
                         .urgency = scheduler_.urgency(i),
                         .resume_point = point ? &*point : nullptr,
                         .outputs_of = steps_.outputs_of()};
    auto& runner = spec(i).run_on == RunOn::success ? runner_ : final_runner_;
    auto outcome = co_await runner.run(step, counts);
    failure = outcome.result.failure;
    if (!failure) {
      const auto ran = results_.as_it_ran(std::move(*key), outcome.code, outcome.code_files);
      endings_.succeed(i, ran, std::move(outcome), counts);
      co_return;
    }
  } catch (const core::EnvironmentError& error) {
    failure = orchestrators::failure_of(error);
  }
  const auto& stop = spec(i).run_on == RunOn::success ? stop_ : user_;
  if (stop.level() != core::StopLevel::none && counts.attempts == 0 && !environments_.has_failed(i))
    failure = Failure{FailureKind::cancelled, "cancelled before it started", {}, {}};
  endings_.fail(i, std::move(*failure), key ? key->key : "", counts);
}

/// In the mode fail_fast, does not wait until the step would begin. One that has begun tells it
/// itself.
void Run::environment_failed(model::StepIndex i) {
  if (!has_begun_ || pipeline_.execution_mode != ExecutionMode::fail_fast ||
      steps_[i].status != StepStatus::pending)
    return;
  try {
    environments_.rethrow(i);
  } catch (const core::EnvironmentError& error) {
    endings_.fail(i, orchestrators::failure_of(error), {}, {});
  }
}

/// Looks for the step's result on this and other machines; if there is none, waits until the step's
/// environment is ready. Afterwards the key is known.
async::Task<bool> Run::is_made(model::StepIndex i, std::optional<StepKey>& key) {
  if (key) {
    const bool is_elsewhere = co_await is_made_elsewhere(i, *key);
    if (is_elsewhere) co_return true;
    if (!environments_.is_begun(i)) environments_.begin(i, spec(i));
    co_await environments_.prepared(i);
    co_return false;
  }
  co_await environments_.prepared(i);
  key = results_.key(spec(i), environments_.of(i).id, steps_.outputs_of());
  if (auto entry = results_.here(spec(i), key->key)) {
    const std::vector<Reuse> hit{endings_.reuse(i, std::move(*entry))};
    journal_.reused(hit);
    co_return true;
  }
  const bool is_elsewhere = co_await is_made_elsewhere(i, *key);
  co_return is_elsewhere;
}

void Run::show_notices(model::StepIndex i) {
  for (const auto& notice : environments_.of(i).notices)
    if (reported_.insert(notice).second) events_.emit(event::Notice{spec(i).name, notice});
}

async::Task<bool> Run::is_made_elsewhere(model::StepIndex i, const StepKey& key) {
  std::optional<store::CacheEntry> entry;
  if (may_be_elsewhere(i)) entry = co_await results_.fetch_remote(spec(i), key);
  if (!entry) {
    if (results_.has_store() && !has_prefetched_) spawn(prefetch());  // A step is known to run.
    co_return false;
  }
  const std::vector<Reuse> hit{endings_.reuse(i, std::move(*entry))};
  journal_.reused(hit);
  co_return true;
}

/// Removes attempts of the run's earlier driver that were not joined.
async::Task<> Run::remove_rest() {
  std::string notice;
  try {
    co_await orchestrator_.remove_orphans([this](const std::string& id) {
      const auto run = services_.runs.find_run(id);
      return run && run->status == RunStatus::running;
    });
  } catch (const core::EnvironmentError& error) {
    notice = std::string("cannot remove what the run had left: ") + error.what();
  }
  if (!notice.empty()) events_.emit(event::Notice{"", notice});
}

/// Removes the attempts' folders. Some files may belong to another user, for example those of a
/// container that ran as root; the results are valid nevertheless.
/// @return a description of what could not be removed
std::string Run::remove_work() {
  try {
    core::remove_tree(services_.runs.work_folder(journal_.run_id()));
    return {};
  } catch (const core::EnvironmentError& error) {
    return std::string(error.what()) +
           "; all results are stored; once its owner has removed it, or given it to you, `pipe "
           "clean --runs` removes the rest";
  }
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
