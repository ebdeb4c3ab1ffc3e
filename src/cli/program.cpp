// run_main() and run(), for a C++ program with its own pipeline.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <pipeline/run.hpp>

#include "cli/command_line.hpp"
#include "cli/context.hpp"
#include "cli/notifications.hpp"
#include "cli/report_error.hpp"
#include "cli/session.hpp"
#include "dsl/builder.hpp"
#include "dsl/step_entry.hpp"
#include "model/instance.hpp"

namespace pipeline {
namespace {

/// Collects what a result consists of, and forwards every event.
class Collector final : public EventSink {
 public:
  explicit Collector(const Function<void(const Event&)>& on_event) : on_event_(on_event) {}
  void emit(const Event& event) override {
    if (const auto* step = std::get_if<event::StepFinished>(&event)) finished[step->step] = *step;
    if (const auto* run = std::get_if<event::RunFinished>(&event)) took = run->took;
    if (on_event_) on_event_(event);
  }
  std::map<std::string, event::StepFinished> finished;
  std::chrono::milliseconds took{};

 private:
  const Function<void(const Event&)>& on_event_;
};

RunResult result_of(cli::Session& session, const engine::RunSummary& summary, Collector& events) {
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
          {output.name, session.context.artifacts().path(output.digest), output.bytes});
    result.steps.push_back(std::move(step));
  }
  return result;
}

RunResult run_here(const Pipeline& pipeline, const RunOptions& options) {
  cli::Options start;
  start.program = &pipeline;
  start.name = pipeline.name();
  start.parameters = options.parameters;
  start.orchestrator = options.executor ? options.executor->name() : options.orchestrator;
  start.executor = options.executor.get();
  start.step = options.step;
  start.jobs = options.jobs;
  start.no_cache = !options.use_cache;
  start.state = options.state;
  cli::Context context(std::move(start));
  cli::Session session(context);
  cli::recover_dead_runs(context, session.store);
  session.pipeline();
  if (!options.executor) cli::require_engine(session);

  Collector events(options.on_event);
  core::CancelSource cancel;
  const std::stop_callback on_stop(options.stop, [&] {
    asio::post(context.loop(), [&cancel] { cancel.stop(core::StopLevel::graceful); });
  });
  const auto summary =
      context.await(engine::run(session.services(), events, cancel, session.run_options()));
  cli::send_notifications(context, session.pipeline(), session.store, session.run_id, events);
  return result_of(session, summary, events);
}

}  // namespace

int run_main(const Pipeline& pipeline, int argc, const char* const* argv) {
  if (const auto step = dsl::step_to_enter()) return dsl::enter_step(pipeline, *step);
  cli::Options start;
  start.program = &pipeline;
  start.name = argc > 0 ? argv[0] : pipeline.name();
  return cli::run_command_line({argv + std::min(argc, 1), argv + argc}, start);
}

void enter_steps(std::initializer_list<const Pipeline*> pipelines) {
  const auto step = dsl::step_to_enter();
  if (!step) return;
  const char* name = std::getenv("PIPE_PIPELINE");
  for (const auto* pipeline : pipelines)
    if (name && pipeline->name() == name) std::exit(dsl::enter_step(*pipeline, *step));
}

RunResult run(const Pipeline& pipeline, const RunOptions& options) {
  enter_steps({&pipeline});
  if (dsl::step_to_enter())
    throw RunError(
        "this process is a step of another pipeline: call pipeline::enter_steps() with all of the "
        "program's before the first run()",
        static_cast<int>(core::ExitCode::bad_input));
  try {
    return run_here(pipeline, options);
  } catch (const std::exception&) {
    const auto report = cli::report_error(std::current_exception(), cli::Paint{false});
    throw RunError(report.text, static_cast<int>(report.code));
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
