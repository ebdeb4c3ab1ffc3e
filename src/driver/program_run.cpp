// run(), for a C++ program with its own pipeline.
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <pipeline/run.hpp>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "driver/error_report.hpp"
#include "driver/profile_use.hpp"
#include "driver/run_driver.hpp"
#include "driver/storage.hpp"
#include "dsl/builder.hpp"
#include "dsl/step_entry.hpp"
#include "model/instance.hpp"

namespace pipeline {
namespace {

/// An exception that RunOptions::on_event has thrown.
class CallbackError : public std::runtime_error {
 public:
  explicit CallbackError(const std::string& what)
      : std::runtime_error("the program's on_event has thrown " + what) {}
};

/// Collects the parts of a result, and forwards every event.
class Collector final : public EventSink {
 public:
  explicit Collector(const Function<void(const Event&)>& on_event) : on_event_(on_event) {}
  void emit(const Event& event) override {
    if (const auto* step = std::get_if<event::StepFinished>(&event)) finished[step->step] = *step;
    if (const auto* run = std::get_if<event::RunFinished>(&event)) took = run->took;
    if (on_event_) try {
        on_event_(event);
      } catch (const std::exception& error) {
        throw CallbackError(std::string("an exception: ") + error.what());
      } catch (...) {
        throw CallbackError("an exception");
      }
  }
  /// Forwards what `pipe` would write to standard error.
  void note(std::string_view text) {
    constexpr std::string_view prefix = "note: ";
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    emit(event::Notice{"", std::string(text)});
  }
  std::map<std::string, event::StepFinished> finished;
  std::chrono::milliseconds took{};

 private:
  const Function<void(const Event&)>& on_event_;
};

/// Shows a run to the program's callback, and stops the run if the callback asks for it.
class ProgramObserver final : public driver::RunObserver {
 public:
  ProgramObserver(Collector& events, std::stop_token stop)
      : events_(events), stop_(std::move(stop)) {}

  void begin(asio::io_context& loop) override {
    on_stop_.emplace(stop_, [this, &loop] {
      asio::post(loop, [this] { cancel_.stop(core::StopLevel::graceful); });
    });
  }
  EventSink& events() override { return events_; }
  core::CancelSource& cancel() override { return cancel_; }
  void warn(const std::string& text, const nlohmann::json&) override { events_.note(text); }
  void say(const std::string& line) override { events_.note(line); }
  void end() override { on_stop_.reset(); }

 private:
  Collector& events_;
  const std::stop_token stop_;
  core::CancelSource cancel_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

/// Returns the result of the run from its records and its events.
RunResult result_of(driver::Session& session, const engine::RunSummary& summary,
                    Collector& events) {
  RunResult result;
  result.id = summary.run;
  result.status = summary.status;
  result.took = events.took;
  for (auto& record : session.store.runs().steps(summary.run)) {
    StepResult step;
    step.name = record.name;
    step.status = record.status;
    if (const auto found = events.finished.find(record.name); found != events.finished.end()) {
      step.attempts = found->second.attempts;
      step.took = found->second.took;
      step.failure = found->second.failure;
      step.reused_from = found->second.reused_from;
    }
    for (const auto& output : record.outputs)
      step.outputs.push_back(
          {output.name, session.workspace.artifacts().path(output.digest), output.bytes});
    result.steps.push_back(std::move(step));
  }
  return result;
}

/// Returns the options of the program and of its profile.
driver::WorkspaceOptions workspace_options(const Pipeline& pipeline, const RunOptions& options) {
  driver::WorkspaceOptions start;
  start.program = &pipeline;
  start.name = pipeline.name();
  start.parameters = options.parameters;
  start.orchestrator = options.executor ? options.executor->name() : options.orchestrator;
  start.executor = options.executor.get();
  start.step = options.step;
  start.jobs = options.jobs;
  start.no_cache = !options.use_cache;
  start.state = options.state;
  start.profile = options.profile;
  const auto is_given = [&](const std::string& option) {
    if (option == "orchestrator")
      return start.executor || options.orchestrator != RunOptions().orchestrator;
    if (option == "jobs") return options.jobs != 0;
    return option == "state" && !options.state.empty();
  };
  driver::use_profile(start, {.folder = dsl::root_of(pipeline), .is_given = is_given});
  return start;
}

RunResult run_pipeline(const Pipeline& pipeline, const RunOptions& options) {
  Collector events(options.on_event);
  driver::Workspace workspace(workspace_options(pipeline, options),
                              [&](std::string_view text) { events.note(text); });
  ProgramObserver observer(events, options.stop);
  driver::RunDriver run(workspace, {.reports_reused_steps = true}, observer);
  const auto end = run.run();
  if (end.outcome.succeeded > 0) driver::warn_of_storage(workspace, end.state);
  return result_of(run.session(), end.outcome, events);
}

/// Returns the text and the diagnostics of the error as `pipe` prints them.
RunError error_of(const std::exception_ptr& error) {
  const auto facts = driver::facts_of(error);
  std::vector<Diagnostic> diagnostics;
  if (!facts.input) {
    std::string hint;
    for (const auto& line : facts.advice) hint += (hint.empty() ? "" : "\n") + line;
    diagnostics.push_back({.message = facts.message, .notes = facts.details, .hint = hint});
    return RunError(driver::plain_text(facts), static_cast<int>(facts.code), diagnostics);
  }
  for (const auto& each : facts.input->diagnostics())
    diagnostics.push_back({.code = each.code,
                           .message = each.message,
                           .file = facts.input->file_of(each),
                           .line = each.span.line,
                           .column = each.span.column,
                           .notes = each.notes,
                           .hint = each.suggestion});
  return RunError(driver::plain_text(facts), static_cast<int>(facts.code), std::move(diagnostics));
}

}  // namespace

void enter_steps(std::initializer_list<const Pipeline*> pipelines) {
  const auto step = dsl::step_to_enter();
  if (!step) return;
  const char* name = std::getenv("PIPE_PIPELINE");
  const Pipeline* found = nullptr;
  for (const auto* pipeline : pipelines)
    if (name && pipeline->name() == name && (!found || !dsl::has_step_to_enter(*found)))
      found = pipeline;
  if (found) std::exit(dsl::enter_step(*found, *step));
}

RunResult run(const Pipeline& pipeline, const RunOptions& options) {
  enter_steps({&pipeline});
  if (dsl::step_to_enter()) {
    const std::string message =
        "this process is a step of another pipeline: call pipeline::enter_steps() with all "
        "pipelines of the program before the first run()";
    throw RunError(message, static_cast<int>(core::ExitCode::bad_input), {{.message = message}});
  }
  try {
    return run_pipeline(pipeline, options);
  } catch (const CallbackError& error) {
    throw error_of(std::make_exception_ptr(core::EnvironmentError(
        error.what(), {"on_event must not throw: catch what its own calls throw"})));
  } catch (const std::exception&) {
    throw error_of(std::current_exception());
  }
}

const StepResult& RunResult::step(const std::string& name) const {
  const StepResult* last_round = nullptr;
  unsigned last = 0;
  for (const auto& step : steps) {
    if (step.name == name) return step;
    const auto round = model::round_of(step.name, name);
    if (!round || *round < last) continue;
    last = *round;
    last_round = &step;
  }
  if (last_round) return *last_round;
  throw std::out_of_range("run " + id + " had no step '" + name + "'");
}

const std::string& RunResult::path(const AnyArtifact& artifact) const {
  const auto& made = step(artifact.step);
  for (const auto& output : made.outputs)
    if (output.name == artifact.output) return output.path;
  throw std::out_of_range("step '" + artifact.step + "' of run " + id + " " +
                          std::string(to_string(made.status)) + ": it has not made '" +
                          artifact.output + "'");
}

}  // namespace pipeline
