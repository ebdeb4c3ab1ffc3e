#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "cli/commands.hpp"
#include "cli/recorded_attempt.hpp"
#include "cli/session.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "detached/detached_record.hpp"
#include "engine/attempt/shell.hpp"
#include "engine/cache/step_keys.hpp"
#include "engine/graph/run_steps.hpp"
#include "model/instance.hpp"

namespace pipeline::cli {
namespace {

/// Passes on what a run would report before its first step.
class Notices : public EventSink {
 public:
  explicit Notices(const Context& context) : context_(context) {}
  void emit(const Event& event) override {
    if (const auto* notice = std::get_if<event::Notice>(&event))
      context_.note("note: " + notice->text);
    if (const auto* log = std::get_if<event::StepLog>(&event))  // Of the orchestrator.
      context_.note(core::printable(log->line));
  }

 private:
  const Context& context_;
};

using RecordedOutputs = std::map<std::string, std::vector<store::OutputRecord>>;

/// Returns what of a run's outputs is on this machine, by step.
RecordedOutputs outputs_of_run(store::RunStore& store, const store::ArtifactStore& artifacts,
                               const std::string& run) {
  RecordedOutputs outputs;
  for (auto& step : store.runs().steps(run)) {
    std::erase_if(step.outputs, [&](const auto& output) { return !artifacts.has(output.digest); });
    outputs.emplace(step.name, std::move(step.outputs));
  }
  return outputs;
}

/// Fills in the outputs of the steps that have none yet.
void take_outputs(engine::RunSteps& steps, RecordedOutputs& recorded) {
  for (model::StepIndex i = 0; i < steps.size(); ++i) {
    auto own = recorded.extract(steps.spec(i).name);
    if (own.empty()) continue;
    if (own.mapped().size() == steps.spec(i).outputs.size())
      steps[i].status = StepStatus::succeeded;
    steps[i].outputs = std::move(own.mapped());
  }
}

/// Adds a round that the run had. @return false if there is none that is not there yet
bool add_round(engine::RunSteps& steps, const RecordedOutputs& recorded) {
  for (model::StepIndex i = 0; i < steps.graph().size(); ++i) {
    if (!steps.is_loop_head(i) ||
        !recorded.contains(model::round_name(steps.spec(i).name, steps.rounds(i))))
      continue;
    steps.add_round(i);
    return true;
  }
  return false;
}

/// Makes the instances and the rounds that the run made of its steps.
void expand(engine::RunSteps& steps, RecordedOutputs recorded, store::ArtifactStore& artifacts) {
  do {
    take_outputs(steps, recorded);
    for (auto group = steps.take_dynamic_matrix(); !group.empty();
         group = steps.take_dynamic_matrix()) {
      steps.expand(group, artifacts);
      take_outputs(steps, recorded);
    }
  } while (add_round(steps, recorded));
  for (model::StepIndex i = 0; i < steps.graph().size(); ++i)
    if (steps.is_loop_head(i) && steps.rounds(i)) steps.end_rounds(i);
}

const StepSpec& step_named(const engine::RunSteps& steps, const std::string& name) {
  for (model::StepIndex i = 0; i < steps.size(); ++i)
    if (steps.spec(i).name == name) return steps.spec(i);
  throw core::InputError("the pipeline has no step '" + name + "' any more",
                         "a shell takes the settings and variables from the pipeline file");
}

/// Says what of the step is not as the attempt had it.
void report_differences(Session& session, const engine::Services& services, const StepSpec& step,
                        const RecordedAttempt& found, const std::string& environment_id,
                        const engine::OutputsOf& outputs_of) {
  if (environment_id.empty()) return;
  engine::StepKeys keys(services);
  session.context.await(keys.data().look_up(services.pipeline, session.remote_cache()));
  const auto now = keys.key(step, environment_id, outputs_of);
  if (now.key == found.step.key) return;
  std::string changes;
  for (const auto& line :
       engine::differences(session.store.cache().key_parts(found.step.key), now.parts))
    if (!line.starts_with("new ")) changes += (changes.empty() ? ": " : "; ") + line;
  session.context.note("note: '" + step.name + "' is not in all as it was in run " + found.run.id +
                       changes +
                       ". Code, inputs and image are the attempt's; command, variables and other "
                       "settings are those of now");
}

std::vector<std::string> words_of(const Options& options) {
  if (!options.shell.command.empty()) return options.shell.command;
  return {"/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"};
}

/// Refuses steps of which no shell can be had.
void check_place(Session& session, const StepSpec& step) {
  const auto& capabilities = session.orchestrator().capabilities_of(step);
  if (!capabilities.shells)
    throw core::InputError(
        "`shell` opens one in a container, a pod or a process of this machine, "
        "and '" +
            step.name + "' ran on " + capabilities.name,
        "`" + session.context.options().name +
            " code` gives its code, "
            "`artifacts` its inputs");
}

}  // namespace

core::ExitCode shell_command(Context& given) {
  auto& recorded = given.existing_store();
  const auto found = recorded_attempt(recorded, given.find_run(recorded), given.options().step,
                                      given.options().attempt);
  const auto code = code_of(given, found);
  auto options = recorded_options(recorded, found.run.id, given.options());
  if (!options)
    throw core::InputError("it was not kept how run " + found.run.id + " was begun",
                           "run the step again, and open a shell in that run");
  Context context(std::move(*options));
  auto detached = detached::detached_of(recorded, found.run.id);
  Session session(context, {}, detached ? &*detached : nullptr);
  engine::RunSteps steps(session.pipeline(), {});
  expand(steps, outputs_of_run(session.store, context.artifacts(), found.run.id),
         context.artifacts());
  const auto& step = step_named(steps, found.step.name);
  check_place(session, step);

  const auto files = code_files(context.artifacts().path(code));
  const engine::CodeProvider provider{
      .files = [&](const StepSpec&) -> const std::vector<store::TreeEntry>& { return files; },
      .missing_file = {}};
  const engine::Services services{session.pipeline(),  session.orchestrator(), session.store,
                                  context.artifacts(), context.stats(),        provider};
  const engine::OutputsOf outputs_of = [&](const SourceSpec& source) {
    const auto made = steps.outputs_of()(source);
    if (made.output) return made;
    throw core::InputError("the input " + source.step + "." + source.output + " of run " +
                               found.run.id + " is not on this machine",
                           "`pipe run --step " + source.step + "` makes it again");
  };

  Notices events(context);
  core::CancelSource cancel;
  engine::ShellRequest shell{
      .run_id = found.run.id,
      .number = found.attempt.number,
      .folder = session.store.folder() / engine::shells_folder / session.run_id,
      .request = {.words = words_of(given.options()), .id = session.run_id},
      .shared = session.remote_cache()};
  shell.request.has_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  shell.request.image = found.step.image;
  orchestrators::Environment environment;
  const auto& place = session.orchestrator().capabilities_of(step);
  if (place.name == "docker") {
    environment = context.await(session.orchestrator().environment(step));
  } else {
    environment = context.await(session.orchestrator().prepare(step, events, cancel));
  }
  report_differences(session, services, step, found, environment.id, outputs_of);
  if (shell.request.has_terminal)
    context.note(
        "attempt " + std::to_string(found.attempt.number) + " of '" + step.name + "' in run " +
        found.run.id +
        ": `eval \"$PIPE_COMMAND\"` runs its command; what it writes is removed at the end");
  // What is elsewhere does not end with this process.
  bool is_stopped = false;
  asio::signal_set signals(context.loop());
  if (!place.on_this_machine)
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signals.add(number);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    is_stopped = true;
    cancel.stop(core::StopLevel::immediate);
  });
  const auto result = context.await(
      engine::open_shell(services, events, cancel, step, std::move(shell), outputs_of));
  context.await(session.orchestrator().settle());
  if (is_stopped) return core::ExitCode::interrupted;
  if (result.failure) throw core::EnvironmentError(result.failure->message, result.failure->hints);
  return static_cast<core::ExitCode>(result.exit_code.value_or(0));
}

}  // namespace pipeline::cli
