#include "engine/attempt/attempt.hpp"

#include <algorithm>
#include <array>

#include "async/deadline.hpp"
#include "async/finally.hpp"
#include "async/joinable_task.hpp"
#include "async/on_pool.hpp"
#include "async/sleep.hpp"
#include "async/system_failure.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "core/scope_guard.hpp"
#include "engine/attempt/attempt_inputs.hpp"
#include "engine/attempt/attempt_phases.hpp"
#include "engine/attempt/failed_outputs.hpp"
#include "engine/attempt/failure_advice.hpp"
#include "engine/attempt/metric_file.hpp"
#include "engine/attempt/metric_log.hpp"
#include "engine/attempt/python_stacks.hpp"
#include "engine/attempt/ranks.hpp"
#include "engine/attempt/secret_mask.hpp"
#include "engine/attempt/stall_findings.hpp"
#include "engine/attempt/stall_watch.hpp"
#include "engine/attempt/step_log.hpp"
#include "engine/attempt/untrusted_files.hpp"
#include "engine/cache/cache_key.hpp"
#include "engine/cache/elsewhere.hpp"
#include "engine/clock.hpp"
#include "engine/gpu/gpu_meter.hpp"
#include "orchestrators/layout.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// If outputs are not stored after this time, a notice says that they are being stored.
constexpr std::chrono::seconds slow_storing{5};

Failure missing_output(const StepSpec& step, const OutputSpec& output) {
  return {FailureKind::missing_output,
          "succeeded but did not write its output '" + output.name + "'",
          {"'" + step.name + "' must write a file or folder at ${outputs." + output.name +
           "}, also in $" + core::variable_name("PIPE_OUTPUT_", output.name)},
          {}};
}

Failure linked_folder() {
  return {FailureKind::bad_output,
          "has replaced the folder of its outputs, or of its other files, by a link or a file",
          {"write the outputs into the folder that is there, or copy them there"},
          {}};
}

/// An attempt. run() calls the member functions in the order in which they stand.
class AttemptRun {
 public:
  AttemptRun(const AttemptContext& context, const StepSpec& step, AttemptOptions options,
             OutputsOf outputs_of)
      : context_(context),
        services_(context.run.services),
        step_(step),
        options_(options),
        secrets_(resolve_secrets(step)),
        folder_(std::make_shared<WorkFolder>(
            context.folders, step.name + "." + std::to_string(options.number),
            services_.routes.capabilities_of(step), options.joins)),
        inputs_(context, step, std::move(outputs_of), folder_->path(), options.joins),
        metrics_(services_.store, run_id(), step.name, options.number, &context_.run.executor),
        log_(
            services_.store.paths().log_file(options.log_name), secret_values(),
            [this](Stream stream, std::string line) { take_line(stream, std::move(line)); },
            [this](std::string row) {
              context_.run.events.emit(
                  event::StepProgress{step_.name, options_.number, std::move(row)});
            }) {}

  async::Task<AttemptOutcome> run(GpuReservation held) {
    const auto start = Clock::now();
    auto prepared = co_await prepare();
    if (outcome_.result.failure) co_return std::move(outcome_);
    const auto execution = co_await execute(prepared, held);
    bool has_ended = false;
    // Cleans up after an exception as well, because no driver joins this attempt again. The caller
    // cleans up after an outcome.
    const core::ScopeGuard clean_unless_ended([&] {
      if (!has_ended && outcome_.result.cleanup) outcome_.result.cleanup();
    });
    if (!held.locks.empty()) {
      held.locks.clear();
      // Steps that wait for the released GPUs run on this thread, or in another process. Such steps
      // should start before folders are removed and outputs stored here.
      co_await async::sleep(std::chrono::milliseconds(1));
    }
    const bool is_linked = collect(execution);
    const auto& failure = outcome_.result.failure;
    const bool is_cancelled = failure && failure->kind == FailureKind::cancelled;
    auto found = is_cancelled ? std::nullopt : inputs_.found_damaged();
    std::optional<Failure> damage;
    if (!found) damage = co_await inputs_.damaged_artifact();
    if (damage && !is_cancelled) {
      found = inputs_.changed_by_other();
      outcome_.result.failure = std::move(damage);
    }
    if (found) throw DamagedInput(*found);
    if (!outcome_.result.failure) outcome_.result.failure = co_await inputs_.changed_data();
    co_await store(is_linked);
    outcome_.result.moved_in += prepared.fetch_time;
    outcome_.phases =
        phases_of(outcome_.result, start, execution.began, execution.ended, Clock::now());
    has_ended = true;
    co_return std::move(outcome_);
  }

  DamagedInput lost_input(const orchestrators::LostInput& lost) const {
    return inputs_.lost_input(lost);
  }

  /// Runs a shell in place of the command. The user ends the shell, and nothing is stored.
  async::Task<AttemptOutcome> run_shell(GpuReservation held) {
    auto prepared = co_await prepare();
    if (outcome_.result.failure) co_return std::move(outcome_);
    StallWatch unlimited(context_.run.executor, log_, std::nullopt);
    auto attempt = attempt_of(prepared, held, unlimited, context_.stop);
    attempt.environment.insert(options_.variables.begin(), options_.variables.end());
    outcome_.result = co_await orchestrator().run(attempt);
    co_return std::move(outcome_);
  }

 private:
  struct Prepared {
    std::vector<orchestrators::AttemptInput> inputs;
    fs::path code;
    Clock::duration fetch_time;  ///< Time for inputs that were not on this machine.
  };
  struct Execution {
    Clock::time_point began, ended;
    bool has_timed_out;
  };

  void take_line(Stream stream, std::string line) {
    event::StepLog log{step_.name, options_.number, stream, std::move(line)};
    if (step_.nodes) ranks_.take(log);
    if (log.rank.value_or(0) == 0) metrics_.add_line(log.line);
    context_.run.events.emit(log);
  }

  /// Stores the code, and checks and lays out the inputs. The outcome has a failure if the user's
  /// data has changed.
  async::Task<Prepared> prepare() {
    // The output of a joined attempt is read from its beginning, which records all metrics again.
    if (options_.joins) services_.store.metrics().remove(run_id(), step_.name, options_.number);
    auto code = co_await inputs_.store_code();
    outcome_.code = code.tree.digest.hex();
    outcome_.code_files = std::move(code.files);
    co_await inputs_.check();
    const auto before = Clock::now();
    auto inputs = co_await inputs_.make();
    const auto fetch_time = Clock::now() - before;
    if (!orchestrator().capabilities().protects_inputs) inputs_.note_artifacts(inputs);
    outcome_.result.failure = co_await inputs_.changed_data();
    co_return Prepared{std::move(inputs), services_.artifacts.path(code.tree.digest), fetch_time};
  }

  /// Runs the command. The timeout begins when the orchestrator reports that the command has begun.
  async::Task<Execution> execute(Prepared& prepared, const GpuReservation& held) {
    async::Deadline deadline(context_.run.executor, context_.stop, std::nullopt,
                             core::StopLevel::graceful);
    StallWatch silence(context_.run.executor, log_, step_.stalled_after.optional());
    auto attempt = attempt_of(prepared, held, silence, deadline.source());
    bool has_begun = false;
    attempt.io.on_began = [&](std::chrono::milliseconds ago) {
      if (std::exchange(has_begun, true)) return;
      silence.begin();
      if (step_.timeout)
        deadline.restart(std::max(Duration{0}, Duration(step_.timeout->count() - ago.count())));
    };
    if (!orchestrator().capabilities_of(step_).reports_begin) attempt.io.on_began({});
    const auto began = Clock::now();
    co_await run_measured(attempt, silence, deadline.source(), held);
    co_return Execution{began, Clock::now(), deadline.expired()};
  }

  /// Ends the log and determines whether the attempt has failed.
  /// @return whether the step has replaced one of its folders by a link
  bool collect(const Execution& execution) {
    report_memory_kills();
    log_.finish();
    const auto* rank_tail = outcome_.result.failure ? ranks_.tail_of_failed() : nullptr;
    const auto& tail = rank_tail ? *rank_tail : log_.tail();
    outcome_.log_tail.assign(tail.begin(), tail.end());
    const bool is_linked = has_linked_folder();
    if (!is_linked)
      determine_failure(execution.has_timed_out);
    else if (context_.stop.level() == core::StopLevel::none)
      outcome_.result.failure = linked_folder();
    if (auto& failure = outcome_.result.failure) hide_secrets(*failure, secret_values());
    return is_linked;
  }

  /// Stores the outputs of a success, and keeps those of a failure for the user.
  async::Task<> store(bool is_linked) {
    if (!outcome_.result.failure) co_await store_and_report();
    const FailedOutputs failed(services_.store.paths().failed_folder(run_id()), step_.name,
                               options_.number);
    if (outcome_.result.failure && !is_linked)
      failed.keep(*folder_ / "outputs");
    else if (options_.number > 1)
      failed.remove_earlier();
    metrics_.flush();
  }

  /// Returns the attempt for the orchestrator; moves the inputs out of `prepared`.
  orchestrators::Attempt attempt_of(Prepared& prepared, const GpuReservation& held, StallWatch& log,
                                    core::CancelSource& cancel) {
    return {{.step = step_,
             .pipeline = services_.pipeline.name,
             .run_id = run_id(),
             .number = options_.number,
             .code = prepared.code,
             .code_digest = outcome_.code,
             .inputs = std::move(prepared.inputs),
             .outputs = *folder_ / "outputs",
             .output_names = attempt_outputs(services_.pipeline, step_),
             .scratch = *folder_ / "scratch",
             .checkpoint = checkpoint(),
             .checkpoint_key = options_.checkpoint ? options_.checkpoint->key() : "",
             .environment = resolve_environment(step_),
             .secrets = secrets_,
             .avoided_nodes = options_.avoided_nodes,
             .gpus = held.gpus,
             .joins = options_.joins,
             .shell = options_.shell},
            {.log = log, .cancel = cancel, .replace_checkpoint = replace_checkpoint()}};
  }

  orchestrators::Orchestrator& orchestrator() const { return services_.routes.of(step_); }
  const std::string& run_id() const { return context_.run.options.run_id; }

  /// Runs the attempt, and samples its GPUs meanwhile.
  async::Task<> run_measured(const orchestrators::Attempt& attempt, StallWatch& silence,
                             core::CancelSource& stop, const GpuReservation& held) {
    if (!held.machine || held.gpus.empty()) {
      co_await run_watched(attempt, silence, stop);
      co_return;
    }
    GpuMeter meter(context_.run.executor, context_.run.pool, *held.machine, held.gpus);
    async::JoinableTask sampling(context_.run.executor, meter.sample());
    co_await async::finally(run_watched(attempt, silence, stop), [&] {
      meter.stop();
      return sampling.join();
    });
    outcome_.result.usage.gpus = meter.usage();
  }

  /// Runs the attempt. When it has stalled, reports that, or ends it if the step wants that.
  async::Task<> run_watched(const orchestrators::Attempt& attempt, StallWatch& silence,
                            core::CancelSource& stop) {
    if (!step_.stalled_after) {
      outcome_.result = co_await run_sessions(attempt, silence);
      co_return;
    }
    async::JoinableTask watch(context_.run.executor, report_stalls(attempt, silence, stop));
    outcome_.result = co_await async::finally(run_sessions(attempt, silence), [&] {
      silence.end();
      return watch.join();
    });
  }

  /// Runs the attempt's processes: one for each rank of a step with nodes, otherwise one.
  async::Task<orchestrators::AttemptResult> run_sessions(const orchestrators::Attempt& attempt,
                                                         StallWatch& silence) {
    return step_.nodes ? ranks_.run(orchestrator(), attempt, silence) : orchestrator().run(attempt);
  }

  async::Task<> report_stalls(const orchestrators::Attempt& attempt, StallWatch& silence,
                              core::CancelSource& stop) {
    for (;;) {
      const bool is_stalled = co_await silence.stalled();
      if (!is_stalled) co_return;
      const bool ends_attempt = step_.retry->stalled == true;
      auto text = "has printed nothing for " + core::format_duration(*step_.stalled_after);
      const std::function<void(const std::string&)> tell = [this](const std::string& line) {
        log_.write(Stream::err, "pipe: " + line + "\n");
      };
      tell("stalled: " + text);
      const auto secrets = secret_values();
      auto found = co_await find_stall_causes(orchestrator(), attempt, ranks_, secrets, tell);
      auto& lines = found.lines;
      if (!lines.empty()) text += "; " + lines.front();
      if (lines.size() > 1) text += " (" + std::to_string(lines.size() - 1) + " more in its log)";
      if (ends_attempt) {
        stalled_ = Failure{FailureKind::stalled,
                           "was ended: it " + text,
                           {"raise `stalled_after:` if it works in silence for that long"},
                           std::move(lines)};
        if (!found.has_stacks) co_await abort_python(orchestrator(), std::move(found.process));
        stop.stop(core::StopLevel::graceful);
        co_return;
      }
      context_.run.events.emit(event::Notice{step_.name, "stalled: " + text});
    }
  }

  std::vector<std::string> secret_values() const {
    std::vector<std::string> values;
    for (const auto& [name, value] : secrets_) values.push_back(value);
    return values;
  }

  /// Returns true if the step has replaced one of its folders by something else, such as a link.
  /// Storing an output moves it, and files behind a link are not the step's.
  bool has_linked_folder() const {
    const auto& own = folder_->path();
    return std::ranges::any_of(
        std::array{own, own / "outputs", own / "scratch"}, [](const fs::path& folder) {
          std::error_code error;
          const auto type = fs::symlink_status(folder, error).type();
          return type != fs::file_type::directory && type != fs::file_type::not_found;
        });
  }

  /// Returns the folder for checkpoints: the step's, or a private one that is removed with the
  /// attempt if another run of the same step uses the step's.
  fs::path checkpoint() const {
    if (!step_.checkpoint) return {};
    if (options_.checkpoint) return options_.checkpoint->folder();
    auto own = *folder_ / "checkpoint";
    core::make_folders(own);
    return own;
  }

  std::function<void(const fs::path&)> replace_checkpoint() const {
    return [kept = options_.checkpoint](const fs::path& fresh) {
      if (kept) kept->replace(fresh);
    };
  }

  fs::path path_of(const OutputSpec& output) const {
    return *folder_ / "outputs" / output.file_name;
  }

  /// Turns a failure into out_of_memory if the kernel killed a process of the step for lack of
  /// memory, whatever the step's own exit code. A success gets a warning in its log and its events.
  void report_memory_kills() {
    auto& failure = outcome_.result.failure;
    if (!outcome_.result.usage.memory_kills) return;
    const std::string killed = "the kernel killed one of its processes for lack of memory";
    if (!failure) {
      log_.write(Stream::err, "pipe: " + killed + ", although the step has succeeded\n");
      context_.run.events.emit(event::Notice{
          step_.name, killed +
                          "; it ended with exit code 0 all the same: look at what it wrote, or "
                          "raise `resources.memory`"});
    } else if (failure->kind == FailureKind::exit_code || failure->kind == FailureKind::signal) {
      failure->kind = FailureKind::out_of_memory;
      failure->message = step_.nodes
                             ? failure->message + "; ran out of memory: " + killed
                             : "ran out of memory: " + killed + ", and it " + failure->message;
    }
  }

  /// Adds to the result what the orchestrator does not know: the stall, the timeout, missing
  /// outputs, and the step's own description of its failure.
  void determine_failure(bool has_timed_out) {
    auto& failure = outcome_.result.failure;
    if (stalled_) {
      failure = std::move(stalled_);
    } else if (has_timed_out) {
      failure = Failure{
          FailureKind::timed_out,
          "was stopped: it ran longer than its timeout of " + core::format_duration(*step_.timeout),
          {"raise `timeout:` if that is too short"},
          {}};
    } else if (!failure) {
      const TakenOutputs taken(folder_->path(), services_.artifacts);
      const auto missing = std::ranges::find_if(step_.outputs, [&](const OutputSpec& output) {
        // The step may have removed the read permission; storing the output reports it.
        std::error_code hidden;
        return fs::symlink_status(path_of(output), hidden).type() == fs::file_type::not_found &&
               !(options_.joins && taken.find(output.name)) &&
               !outcome_.result.elsewhere.contains(output.name);
      });
      if (missing != step_.outputs.end()) failure = missing_output(step_, *missing);
    }
    if (!failure) return;
    if (failure->kind == FailureKind::exit_code || failure->kind == FailureKind::signal)
      read_failure(*folder_ / "scratch" / orchestrators::failure_file_name.data(), secret_values(),
                   *failure);
    if (failure->kind != FailureKind::cancelled)
      advise(step_, services_.code, log_.tail_text(), *failure);
  }

  /// Stores the outputs. Reports storing that takes long.
  async::Task<> store_and_report() {
    core::CancelSource stored;
    async::JoinableTask report(context_.run.executor, report_slow_storing(stored));
    co_await async::finally(store_outputs(), [&] {
      stored.stop(core::StopLevel::graceful);
      return report.join();
    });
  }

  async::Task<> report_slow_storing(core::CancelSource& stored) {
    co_await async::sleep(slow_storing, &stored);
    if (stored.level() == core::StopLevel::none)
      context_.run.events.emit(event::Notice{
          step_.name, "has ended, and its outputs are being stored: many or large files"});
  }

  async::Task<> store_outputs() {
    const TakenOutputs taken(folder_->path(), services_.artifacts);
    const bool others_may_join = orchestrator().capabilities().outlives_driver;
    try {
      for (const auto& output : step_.outputs) {
        if (take_elsewhere(services_.artifacts, output, outcome_)) continue;
        if (output.metrics) take_metrics(output);
        const auto stored = co_await async::on_pool(
            context_.run.pool, [&] { return store_output(output, taken, others_may_join); });
        context_.checked.insert(stored.digest);
        add_stored(output, stored, outcome_);
      }
    } catch (const core::ContentError& error) {
      // The message has names of files, which the step has chosen.
      auto message = without_secrets(error.what(), secret_values());
      outcome_.result.failure =
          Failure{FailureKind::bad_output, std::move(message), error.advice(), {}};
    }
    if (outcome_.result.failure) {
      outcome_.outputs.clear();
      co_return;
    }
    folder_->succeeded = true;
    outcome_.folder = folder_;
    outcome_.checkpoint = options_.checkpoint;
  }

  void take_metrics(const OutputSpec& output) {
    const auto now = wall_now();
    read_metric_file(path_of(output), output.file_name,
                     [&](const std::string& name, store::MetricPoint point) {
                       point.time = now;
                       metrics_.add(name, point);
                     });
  }

  store::StoredArtifact store_output(const OutputSpec& output, const TakenOutputs& taken,
                                     bool others_may_join) const {
    if (options_.joins)
      if (const auto before = taken.find(output.name)) return *before;
    std::function<void(const store::StoredArtifact&)> before_removal;
    if (others_may_join)
      before_removal = [&](const store::StoredArtifact& artifact) {
        taken.note(output.name, artifact);
      };
    return services_.artifacts.take(path_of(output), before_removal,
                                    fs::path(orchestrators::container_outputs) / output.file_name);
  }

  const AttemptContext& context_;
  const Services& services_;
  const StepSpec& step_;
  const AttemptOptions options_;
  const StringMap secrets_;
  const std::shared_ptr<WorkFolder> folder_;
  AttemptInputs inputs_;
  MetricLog metrics_;
  StepLogWriter log_;
  Ranks ranks_;  ///< Used for a step with nodes.
  AttemptOutcome outcome_;
  std::optional<Failure> stalled_;  ///< Set if the attempt was ended because it had stalled.
};

}  // namespace

async::Task<AttemptOutcome> run_attempt(AttemptContext context, const StepSpec& step,
                                        AttemptOptions options, OutputsOf outputs_of,
                                        GpuReservation gpus) {
  // On the heap, because few attempts need a copy of the step, and thousands may wait.
  std::unique_ptr<StepSpec> raised;
  if (options.memory) {
    raised = std::make_unique<StepSpec>(step);
    raised->settings->resources.memory = options.memory;
  }
  AttemptRun attempt(context, raised ? *raised : step, options, std::move(outputs_of));
  try {
    if (options.shell) co_return co_await attempt.run_shell(std::move(gpus));
    co_return co_await attempt.run(std::move(gpus));
  } catch (const orchestrators::LostInput& lost) {
    throw attempt.lost_input(lost);
  } catch (...) {  // For example: a file was changed meanwhile, or system resources are lacking.
    async::rethrow_as_environment_error();
  }
}

}  // namespace pipeline::engine
