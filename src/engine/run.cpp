#include "engine/run.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/graph.hpp"
#include "engine/attempt.hpp"
#include "engine/clock.hpp"
#include "engine/decision.hpp"
#include "engine/memo.hpp"
#include "engine/waiting.hpp"

namespace pipeline::engine {
namespace {

/// What is on disk comes first: an event is seen by others only once it is stored.
class Run {
 public:
  Run(const PipelineSpec& pipeline, Orchestrator& orchestrator, store::RunStore& runs, store::ArtifactStore& artifacts, store::StatIndex& stats,
      const CodeProvider& code, EventSink& events, CancelSource& user, RunOptions options, asio::any_io_executor executor)
      : pipeline_(pipeline), orchestrator_(orchestrator), runs_(runs), artifacts_(artifacts), stats_(stats), code_(code), events_(events), user_(user),
        options_(std::move(options)), selected_(select_steps(pipeline, options_.only_step)), graph_(needs_of(pipeline, selected_)), scheduler_(graph_),
        states_(selected_.size()), decisions_(pipeline, runs, artifacts, stats, code), executor_(executor), wake_(executor),
        slots_(options_.jobs ? options_.jobs : std::max(1u, std::thread::hardware_concurrency())), pool_(2) {
    for (StepIndex i = 0; i < selected_.size(); ++i) position_.emplace(spec(i).name, i);
    record_.id = options_.run_id;
    if (!options_.identity.empty() && options_.use_cache) memo_.emplace(options_.identity);
  }

  Task<RunSummary> execute();

 private:
  struct State {
    StepStatus status = StepStatus::pending;
    std::vector<store::OutputRecord> outputs;
    std::unique_ptr<Gate> prepared;  ///< Made when preparation begins.
    Environment environment;
    std::exception_ptr prepare_error;
  };
  struct Hit {
    StepIndex step;
    store::CacheEntry entry;
  };

  const StepSpec& spec(StepIndex i) const { return pipeline_.steps[selected_[i]]; }
  OutputsOf outputs_of() const;
  store::StepRecord record_of(StepIndex i, StepStatus status, const std::string& key = {}) const;

  void check_secrets() const;
  void note_sources();
  void begin();
  Task<> sweep();
  Task<> prefetch();
  void start(StepIndex i, std::optional<StepKey> key, Environment environment);
  Task<> run_step(StepIndex i, std::optional<StepKey> key);
  Task<AttemptOutcome> try_once(StepIndex i, unsigned number);
  void start_preparing(StepIndex i);
  Task<> prepared(StepIndex i);
  Task<> pause(Duration delay);

  void reuse(std::vector<Hit> hits);
  void succeed(StepIndex i, const StepKey& key, const AttemptOutcome& outcome, unsigned attempts, WallTime started, std::chrono::milliseconds took);
  void fail(StepIndex i, Failure failure, const std::string& key, unsigned attempts, WallTime started, std::chrono::milliseconds took);
  void skip(StepIndex i, const std::string& reason, StepStatus status);
  void finish_rest();
  void remember();
  RunSummary finish();

  const PipelineSpec& pipeline_;
  Orchestrator& orchestrator_;
  store::RunStore& runs_;
  store::ArtifactStore& artifacts_;
  store::StatIndex& stats_;
  const CodeProvider& code_;
  EventSink& events_;
  CancelSource& user_;
  RunOptions options_;
  std::vector<std::size_t> selected_;
  Graph graph_;
  Scheduler scheduler_;
  std::vector<State> states_;
  std::unordered_map<std::string_view, StepIndex> position_;
  Decisions decisions_;
  asio::any_io_executor executor_;
  Gate wake_;
  Slots slots_;
  asio::thread_pool pool_;
  CancelSource stop_;           ///< The user's stop, or fail_fast's.
  CancelSource building_;       ///< Follows stop_.
  std::string stopped_by_;      ///< The step whose failure keeps others from starting.
  std::size_t active_ = 0;
  std::exception_ptr fatal_;    ///< The store itself failed: nothing can be recorded any more.
  store::RunRecord record_;
  std::optional<Memo> memo_;
  RunSummary summary_;
  Clock::time_point began_ = Clock::now();
};

OutputsOf Run::outputs_of() const {
  return [this](const InputSpec& input) -> const store::OutputRecord& {
    const auto& outputs = states_[position_.at(input.step)].outputs;
    return *std::ranges::find(outputs, input.output, &store::OutputRecord::name);
  };
}

store::StepRecord Run::record_of(StepIndex i, StepStatus status, const std::string& key) const {
  store::StepRecord record{.run = record_.id, .name = spec(i).name, .status = status, .key = key};
  record.parameters = nlohmann::json(spec(i).parameters).dump();
  return record;
}

/// Before anything is built: what a step will ask of the caller must be there.
void Run::check_secrets() const {
  for (StepIndex i = 0; i < selected_.size(); ++i) {
    if (!spec(i).environment.empty()) resolve_environment(spec(i));
    if (!spec(i).secrets.empty()) resolve_secrets(spec(i));
  }
}

void Run::begin() {
  record_.pipeline = pipeline_.name;
  record_.orchestrator = orchestrator_.capabilities().name;
  record_.file = pipeline_.file.string();
  record_.parameters = nlohmann::json(pipeline_.parameters).dump();
  record_.git_commit = options_.git_commit;
  record_.git_dirty = options_.git_dirty;
  record_.started = wall_now();
  record_.driver = store::ProcessId::self();
  record_.steps = selected_.size();
  runs_.transaction([&] {
    runs_.add_run(record_);
    for (StepIndex i = 0; i < selected_.size(); ++i) runs_.put_step(record_of(i, StepStatus::pending));
  });
  events_.emit(event::RunStarted{record_.id, pipeline_.name, record_.orchestrator, selected_.size()});
}

Task<RunSummary> Run::execute() {
  check_secrets();
  begin();
  const CancelSource::Listener listener(user_, [this](StopLevel level) {
    stop_.stop(level);
    wake_.open();
  });
  const CancelSource::Listener builds(stop_, [this](StopLevel level) { building_.stop(level); });
  try {
    note_sources();
    co_await sweep();
    co_await prefetch();
    while (active_ > 0 || (scheduler_.has_ready() && stop_.level() == StopLevel::none && stopped_by_.empty() && !fatal_)) {
      if (scheduler_.done()) building_.stop(StopLevel::immediate);  // what is still being built, nobody needs any more
      co_await wake_.wait();
      wake_.close();
      co_await sweep();
    }
  } catch (...) {
    fatal_ = std::current_exception();
  }
  if (fatal_) stop_.stop(StopLevel::graceful);
  while (active_ > 0) {  // coroutines of steps refer to this object: wait for them, whatever happened
    wake_.close();
    co_await wake_.wait();
  }
  remove_tree(work_folder(runs_, record_.id));
  if (fatal_) std::rethrow_exception(fatal_);
  finish_rest();
  stats_.save();
  auto summary = finish();
  remember();
  co_return summary;
}

/// What the spec was made from is remembered as it is at the beginning: a file that changes during the run is looked at again by the next one.
void Run::note_sources() {
  if (!memo_) return;
  for (const auto& path : options_.sources) memo_->looked_at(path);
  std::set<const void*> seen;
  for (StepIndex i = 0; i < selected_.size(); ++i) {
    const auto& files = code_.files(spec(i));
    if (seen.insert(&files).second)
      for (const auto& file : files) memo_->looked_at(file.source);
    for (const auto& [name, value] : spec(i).environment)
      if (!value) memo_->took_variable(name);
    if (!spec(i).cache || !spec(i).secrets.empty()) memo_->spoil();  // runs each time, or may be missing a secret
  }
}

void Run::remember() {
  if (!memo_ || summary_.status != RunStatus::succeeded) return;
  std::set<std::string> rechecks;
  for (const auto& state : states_) {
    if (rechecks.insert(state.environment.recheck).second) memo_->ran_in(state.environment.recheck);
    for (const auto& output : state.outputs) memo_->made(output.digest);
  }
  memo_->save(runs_, record_.id, selected_.size());
}

/// Takes every step that is ready: reuses it at once, or starts it.
Task<> Run::sweep() {
  std::vector<Hit> hits;
  while (stop_.level() == StopLevel::none && stopped_by_.empty()) {
    const auto i = scheduler_.take();
    if (!i) break;
    std::optional<Failure> failure;
    try {
      auto environment = co_await orchestrator_.environment(spec(*i));
      std::optional<StepKey> key;
      if (!environment.id.empty()) key = decisions_.key(spec(*i), environment.id, outputs_of());
      if (auto entry = key && options_.use_cache ? decisions_.reusable(spec(*i), key->key) : std::nullopt) {
        states_[*i].outputs = entry->outputs;
        states_[*i].environment = std::move(environment);
        scheduler_.succeeded(*i);
        hits.push_back({*i, std::move(*entry)});
      } else {
        start(*i, std::move(key), std::move(environment));
      }
    } catch (const BuildError& error) {
      failure = Failure{FailureKind::build, error.what(), error.advice(), error.details()};
    } catch (const EnvironmentError& error) {
      failure = Failure{FailureKind::environment, error.what(), error.advice(), {}};
    }
    if (failure) fail(*i, std::move(*failure), {}, 0, wall_now(), {});
  }
  reuse(std::move(hits));
}

/// Makes what later steps will run in while the first ones run.
Task<> Run::prefetch() {
  if (active_ == 0) co_return;
  for (StepIndex i = 0; i < selected_.size() && stop_.level() == StopLevel::none; ++i) {
    if (states_[i].status != StepStatus::pending || states_[i].prepared) continue;
    bool is_ready = true;
    try {
      is_ready = (co_await orchestrator_.environment(spec(i))).ready;
    } catch (const EnvironmentError&) {  // told when the step's turn comes
    }
    if (!is_ready && !states_[i].prepared) start_preparing(i);
  }
}

void Run::start(StepIndex i, std::optional<StepKey> key, Environment environment) {
  states_[i].status = StepStatus::running;
  if (environment.ready && key) {
    states_[i].environment = std::move(environment);
    states_[i].prepared = std::make_unique<Gate>(executor_);
    states_[i].prepared->open();
  } else if (!states_[i].prepared) {
    start_preparing(i);
  }
  ++active_;
  asio::co_spawn(executor_, run_step(i, std::move(key)), [this](std::exception_ptr error) {
    if (error && !fatal_) {
      fatal_ = error;
      stop_.stop(StopLevel::graceful);
    }
    --active_;
    wake_.open();
  });
}

void Run::start_preparing(StepIndex i) {
  states_[i].prepared = std::make_unique<Gate>(executor_);
  ++active_;
  asio::co_spawn(executor_, orchestrator_.prepare(spec(i), events_, building_), [this, i](std::exception_ptr error, Environment environment) {
    states_[i].environment = std::move(environment);
    states_[i].prepare_error = error;
    states_[i].prepared->open();
    if (error && pipeline_.execution_mode == ExecutionMode::fail_fast) stop_.stop(StopLevel::graceful);
    --active_;
    wake_.open();
  });
}

Task<> Run::prepared(StepIndex i) {
  co_await states_[i].prepared->wait();
  if (states_[i].prepare_error) std::rethrow_exception(states_[i].prepare_error);
}

Task<> Run::run_step(StepIndex i, std::optional<StepKey> key) {
  const auto& step = spec(i);
  auto started = wall_now();
  auto start = Clock::now();
  unsigned number = 0;
  std::optional<Failure> failure;
  try {
    co_await prepared(i);
    if (!key) {
      key = decisions_.key(step, states_[i].environment.id, outputs_of());
      if (auto entry = options_.use_cache ? decisions_.reusable(step, key->key) : std::nullopt) {
        states_[i].outputs = entry->outputs;
        scheduler_.succeeded(i);
        std::vector<Hit> hits;
        hits.push_back({i, std::move(*entry)});
        reuse(std::move(hits));
        co_return;
      }
    }
    Duration delay = step.retry.delay.value_or(Duration{0});
    for (;;) {
      co_await slots_.acquire(i);
      if (stop_.level() != StopLevel::none) {
        slots_.release();
        failure = Failure{FailureKind::cancelled, "cancelled before it started", {}, {}};
        break;
      }
      if (++number == 1) {
        started = wall_now();
        start = Clock::now();
      }
      AttemptOutcome outcome;
      std::exception_ptr error;
      try {
        outcome = co_await try_once(i, number);
      } catch (...) {
        error = std::current_exception();
      }
      slots_.release();
      if (error) std::rethrow_exception(error);
      if (!outcome.result.failure) {
        succeed(i, *key, outcome, number, started, since(start));
        co_return;
      }
      failure = outcome.result.failure;
      failure->details.assign(outcome.log_tail.begin(), outcome.log_tail.end());
      const bool again = number <= step.retry.max_retries.value_or(0) && failure->kind != FailureKind::cancelled &&
                         failure->kind != FailureKind::not_started && stop_.level() == StopLevel::none;
      if (!again) break;
      events_.emit(event::StepRetried{step.name, number, *failure, delay});
      co_await pause(delay);
      delay = std::chrono::duration_cast<Duration>(delay * step.retry.backoff.value_or(1.0));
    }
  } catch (const BuildError& error) {
    failure = Failure{FailureKind::build, error.what(), error.advice(), error.details()};
  } catch (const EnvironmentError& error) {
    failure = Failure{FailureKind::environment, error.what(), error.advice(), {}};
  }
  if (stop_.level() != StopLevel::none && failure->kind != FailureKind::cancelled && number == 0)
    failure = Failure{FailureKind::cancelled, "cancelled before it started", {}, {}};  // its environment was given up
  fail(i, std::move(*failure), key ? key->key : "", number, started, since(start));
}

Task<AttemptOutcome> Run::try_once(StepIndex i, unsigned number) {
  const auto& step = spec(i);
  const auto log_name = record_.id + "/" + step.name + "." + std::to_string(number) + ".log";
  store::AttemptRecord record{.run = record_.id, .step = step.name, .number = number, .started = wall_now(), .log = log_name};
  auto running = record_of(i, StepStatus::running);
  running.started = record.started;
  running.attempts = number;
  running.image = states_[i].environment.description;
  runs_.transaction([&] {
    runs_.put_step(running);
    runs_.put_attempt(record);
  });
  events_.emit(event::StepStarted{step.name, number, states_[i].environment.description});

  std::vector<AttemptInput> inputs;
  for (const auto& input : step.inputs) {
    const auto& output = outputs_of()(input);
    inputs.push_back({input.name, output.file_name, artifacts_.path(output.digest)});
  }
  const AttemptContext context{pipeline_, orchestrator_, runs_, artifacts_, stats_, code_, events_, pool_, stop_, record_.id};
  const auto start = Clock::now();
  AttemptOutcome outcome;
  std::exception_ptr error;
  try {
    outcome = co_await run_attempt(context, step, number, std::move(inputs), log_name);
  } catch (const EnvironmentError& failed) {
    record.failure_kind = to_string(FailureKind::environment);
    record.message = failed.what();
    error = std::current_exception();
  }
  record.took = since(start);
  record.ended = wall_now();
  record.exit_code = outcome.result.exit_code;
  if (const auto& failure = outcome.result.failure) {
    record.failure_kind = to_string(failure->kind);
    record.message = failure->message;
  }
  runs_.put_attempt(record);
  if (error) std::rethrow_exception(error);
  co_return outcome;
}

/// Waits, unless the run is stopped.
Task<> Run::pause(Duration delay) {
  asio::steady_timer timer(executor_, delay);
  const CancelSource::Listener listener(stop_, [&](StopLevel) { timer.cancel(); });
  if (stop_.level() != StopLevel::none) co_return;
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void Run::reuse(std::vector<Hit> hits) {
  if (hits.empty()) return;
  const auto now = wall_now();
  runs_.transaction([&] {
    for (const auto& [i, entry] : hits) {
      auto record = record_of(i, StepStatus::cached, entry.key);
      record.reused_from = entry.run;
      record.outputs = entry.outputs;
      record.started = record.ended = now;
      runs_.put_step(record);
    }
  });
  for (const auto& [i, entry] : hits) {
    states_[i].status = StepStatus::cached;
    ++summary_.cached;
    events_.emit(event::StepFinished{spec(i).name, StepStatus::cached, 0, {}, std::nullopt, entry.run});
  }
}

void Run::succeed(StepIndex i, const StepKey& key, const AttemptOutcome& outcome, unsigned attempts, WallTime started, std::chrono::milliseconds took) {
  auto record = record_of(i, StepStatus::succeeded, key.key);
  record.started = started;
  record.ended = wall_now();
  record.took = took;
  record.attempts = attempts;
  record.image = outcome.result.image;
  record.outputs = outcome.outputs;
  runs_.transaction([&] {
    runs_.put_step(record);
    runs_.add_cache_entry({key.key, record_.id, spec(i).name, outcome.outputs}, pipeline_.name, key.parts);
  });
  states_[i].outputs = outcome.outputs;
  states_[i].status = StepStatus::succeeded;
  ++summary_.succeeded;
  scheduler_.succeeded(i);
  events_.emit(event::StepFinished{spec(i).name, StepStatus::succeeded, attempts, took, std::nullopt, {}});
}

void Run::fail(StepIndex i, Failure failure, const std::string& key, unsigned attempts, WallTime started, std::chrono::milliseconds took) {
  const bool cancelled = failure.kind == FailureKind::cancelled;
  auto record = record_of(i, cancelled ? StepStatus::cancelled : StepStatus::failed, key);
  record.started = started;
  record.ended = wall_now();
  record.took = took;
  record.attempts = attempts;
  record.message = failure.message;
  states_[i].status = record.status;
  summary_.build_failed |= failure.kind == FailureKind::build;
  summary_.environment_failed |= failure.kind == FailureKind::environment;
  ++(cancelled ? summary_.cancelled : summary_.failed);
  const auto lost = scheduler_.failed(i);
  runs_.put_step(record);
  events_.emit(event::StepFinished{spec(i).name, record.status, attempts, took, std::move(failure), {}});
  for (const auto dependent : lost)
    skip(dependent, "needs '" + spec(i).name + "', which " + (cancelled ? "was cancelled" : "failed"), cancelled ? StepStatus::cancelled : StepStatus::skipped);
  if (cancelled || pipeline_.execution_mode == ExecutionMode::continue_on_failure) return;
  if (stopped_by_.empty()) stopped_by_ = spec(i).name;
  if (pipeline_.execution_mode == ExecutionMode::fail_fast) stop_.stop(StopLevel::graceful);
}

void Run::skip(StepIndex i, const std::string& reason, StepStatus status) {
  auto record = record_of(i, status);
  record.message = reason;
  runs_.put_step(record);
  states_[i].status = status;
  ++(status == StepStatus::cancelled ? summary_.cancelled : summary_.skipped);
  events_.emit(event::StepFinished{spec(i).name, status, 0, {}, Failure{FailureKind::cancelled, reason, {}, {}}, {}});
}

/// What never had its turn, because the run was stopped.
void Run::finish_rest() {
  const bool by_user = user_.level() != StopLevel::none;
  const std::string reason =
      by_user ? "the run was interrupted" : "not started, since '" + stopped_by_ + "' failed (execution_mode: " +
                                                (pipeline_.execution_mode == ExecutionMode::fail_fast ? "fail_fast" : "stop_on_failure") + ")";
  runs_.transaction([&] {
    for (StepIndex i = 0; i < states_.size(); ++i)
      if (states_[i].status == StepStatus::pending) skip(i, reason, by_user ? StepStatus::cancelled : StepStatus::skipped);
  });
}

RunSummary Run::finish() {
  record_.status = user_.level() != StopLevel::none && summary_.succeeded + summary_.cached < selected_.size() ? RunStatus::interrupted
                   : summary_.failed > 0                                                                        ? RunStatus::failed
                                                                                                                : RunStatus::succeeded;
  record_.ended = wall_now();
  record_.took = since(began_);
  record_.cached = summary_.cached;
  record_.failed = summary_.failed;
  runs_.finish_run(record_);
  summary_.run = record_.id;
  summary_.status = record_.status;
  events_.emit(event::RunFinished{record_.id, record_.status, record_.took});
  return summary_;
}

}  // namespace

Task<RunSummary> run(const PipelineSpec& pipeline, Orchestrator& orchestrator, store::RunStore& runs, store::ArtifactStore& artifacts, store::StatIndex& stats,
                     const CodeProvider& code, EventSink& events, CancelSource& cancel, RunOptions options) {
  Run run(pipeline, orchestrator, runs, artifacts, stats, code, events, cancel, std::move(options), co_await asio::this_coro::executor);
  co_return co_await run.execute();
}

}  // namespace pipeline::engine
