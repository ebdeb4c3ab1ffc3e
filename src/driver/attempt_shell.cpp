#include "driver/attempt_shell.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>

#include "core/diagnostic.hpp"
#include "driver/detached_record.hpp"
#include "driver/drivers.hpp"
#include "driver/recorded_attempt.hpp"
#include "driver/session.hpp"
#include "engine/attempt/shell.hpp"
#include "engine/cache/step_keys.hpp"
#include "engine/graph/run_steps.hpp"
#include "model/instance.hpp"
#include "orchestrators/nodes.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::driver {
namespace {

/// Reports the notices that a run would report before its first step.
class Notices : public EventSink {
 public:
  explicit Notices(const Workspace& workspace) : workspace_(workspace) {}
  void emit(const Event& event) override {
    if (const auto* notice = std::get_if<event::Notice>(&event))
      workspace_.note("note: " + notice->text);
    if (const auto* log = std::get_if<event::StepLog>(&event))  // Written by the orchestrator.
      workspace_.note(core::printable(log->line));
  }

 private:
  const Workspace& workspace_;
};

using RecordedOutputs = std::map<std::string, std::vector<store::OutputRecord>>;

/// Returns the outputs of a run that are on this machine or in a remote store, by step.
RecordedOutputs outputs_of_run(store::RunStore& store, const store::ArtifactStore& artifacts,
                               const std::string& run) {
  RecordedOutputs outputs;
  for (auto& step : store.runs().steps(run)) {
    std::erase_if(step.outputs,
                  [&](const auto& output) { return !artifacts.is_known(output.digest); });
    outputs.emplace(step.name, std::move(step.outputs));
  }
  return outputs;
}

/// Moves the recorded outputs to their steps. A step that has all of its outputs has succeeded.
void take_outputs(engine::RunSteps& steps, RecordedOutputs& recorded) {
  for (model::StepIndex i = 0; i < steps.size(); ++i) {
    auto own = recorded.extract(steps.spec(i).name);
    if (own.empty()) continue;
    if (own.mapped().size() == steps.spec(i).outputs.size())
      steps[i].status = StepStatus::succeeded;
    steps[i].outputs = std::move(own.mapped());
  }
}

/// Adds a round that the run had. Returns false if the run had no further round.
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

/// Adds the instances and the rounds that the run has made of its steps.
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

std::vector<std::string> words_of(const ShellAttempt& wanted) {
  if (!wanted.command.empty()) return wanted.command;
  return {"/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"};
}

/// Throws InputError for a step that ran where no shell can be opened.
void check_has_shells(Session& session, const StepSpec& step) {
  const auto& capabilities = session.routes().capabilities_of(step);
  if (!capabilities.shells)
    throw core::InputError(
        "a shell opens in a container, a pod, a job of Slurm or a process of this machine, and '" +
            step.name + "' ran on " + capabilities.name,
        "`" + session.workspace.options().name +
            " code` shows the code of the step, and `artifacts` shows its inputs");
}

/// Returns the process with the rank; nothing for a step that is one process. Throws InputError if
/// the step has no such rank.
std::optional<orchestrators::NodeProcess> process_of(const StepSpec& step,
                                                     const std::optional<unsigned>& rank) {
  if (!step.nodes && rank)
    throw core::InputError("'" + step.name + "' has no `nodes`: it is one process",
                           "leave out --rank");
  if (!step.nodes) return std::nullopt;
  const auto gpus = settings::gpu_request(step.settings->resources).count;
  orchestrators::NodeProcess process;
  process.nodes = step.nodes.count;
  process.local_ranks = orchestrators::processes_of(step.nodes, gpus);
  process.ranks = process.nodes * process.local_ranks;
  process.rank = rank.value_or(0);
  if (process.rank >= process.ranks)
    throw core::InputError("'" + step.name + "' has no rank " + std::to_string(process.rank) +
                           ": its ranks are 0 to " + std::to_string(process.ranks - 1));
  process.node = process.rank / process.local_ranks;
  process.local_rank = process.rank % process.local_ranks;
  process.gpus_of_node = gpus;
  return process;
}

/// Opens a shell for one attempt.
class AttemptShell {
 public:
  /// @param given     the workspace of the command, whose state folder has the attempt
  /// @param workspace has the options with which the attempt's run was begun
  AttemptShell(Workspace& given, Workspace& workspace, RecordedAttempt found, bool is_running)
      : workspace_(workspace),
        found_(std::move(found)),
        is_running_(is_running),
        files_(is_running_ ? std::vector<store::TreeEntry>()
                           : code_files(given.artifacts().path(code_of(given, found_)))),
        detached_(detached_of(given.existing_store(), found_.run.id)),
        session_(workspace, {}, detached_ ? &*detached_ : nullptr),
        steps_(session_.pipeline(), {}) {
    expand(steps_, outputs_of_run(session_.store, workspace.artifacts(), found_.run.id),
           workspace.artifacts());
    check_has_shells(session_, step());
  }

  core::ExitCode open(const ShellAttempt& wanted) {
    return is_running_ ? join(wanted) : open_another(wanted);
  }

 private:
  core::ExitCode join(const ShellAttempt& wanted);
  core::ExitCode open_another(const ShellAttempt& wanted);
  const StepSpec& step() const { return step_named(steps_, found_.step.name); }
  orchestrators::Environment environment(EventSink& events);
  void report_differences(const engine::Services& services, const std::string& environment_id,
                          const engine::OutputsOf& outputs_of);
  engine::StepShell request(const ShellAttempt& wanted, EventSink& events);
  void stop_at_signals();

  Workspace& workspace_;
  const RecordedAttempt found_;
  const bool is_running_;  ///< The attempt is running, as far as this machine knows.
  const std::vector<store::TreeEntry> files_;
  std::optional<DetachedRecord> detached_;
  Session session_;
  engine::RunSteps steps_;
  core::CancelSource cancel_;
  asio::signal_set signals_{workspace_.loop()};
  bool is_stopped_ = false;
};

/// Returns the step's environment, which must be ready for a shell: an engine has the attempt's
/// image, other environments are prepared again.
orchestrators::Environment AttemptShell::environment(EventSink& events) {
  auto& orchestrator = session_.routes().of(step());
  if (orchestrator.capabilities().traits.runs_on_engine)
    return workspace_.await(orchestrator.environment(step()));
  return workspace_.await(orchestrator.prepare(step(), events, cancel_));
}

/// Reports how the step of the present pipeline differs from the one that the attempt ran.
void AttemptShell::report_differences(const engine::Services& services,
                                      const std::string& environment_id,
                                      const engine::OutputsOf& outputs_of) {
  if (environment_id.empty()) return;
  engine::StepKeys keys(services);
  workspace_.await(keys.data().look_up(services.pipeline, session_.remote_cache(), found_.run.id));
  const auto now = keys.key(step(), {.id = environment_id}, outputs_of);
  if (now.key == found_.step.key) return;
  std::string changes;
  for (const auto& line :
       engine::differences(session_.store.cache().key_parts(found_.step.key), now.parts))
    if (!line.starts_with("new ")) changes += (changes.empty() ? ": " : "; ") + line;
  workspace_.note("note: '" + step().name + "' has changed since run " + found_.run.id + changes +
                  ". The shell has the code, inputs and image of the attempt, and the command, "
                  "variables and other settings of the present pipeline");
}

/// Returns the request for a shell of its own, without `outputs_of` and `process`.
engine::StepShell AttemptShell::request(const ShellAttempt& wanted, EventSink& events) {
  engine::StepShell shell{
      .step = step(),
      .events = events,
      .stop = cancel_,
      .outputs_of = {},
      .run_id = found_.run.id,
      .number = found_.attempt.number,
      .folder = session_.store.folder() / engine::shells_folder / session_.run_id,
      .request = {.words = words_of(wanted), .id = session_.run_id},
      .remote_cache = session_.remote_cache()};
  shell.request.has_terminal = wanted.has_terminal;
  shell.request.image = found_.step.image;
  return shell;
}

/// Ends the shell at a signal: processes on another machine do not end with this one.
void AttemptShell::stop_at_signals() {
  if (!session_.routes().capabilities_of(step()).on_this_machine)
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signals_.add(number);
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    is_stopped_ = true;
    cancel_.stop(core::StopLevel::immediate);
  });
}

/// Opens the shell beside the running process.
core::ExitCode AttemptShell::join(const ShellAttempt& wanted) {
  const auto process = process_of(step(), wanted.rank);
  orchestrators::RunningProcess running{found_.run.id, step().name, found_.attempt.number};
  if (process) {
    running.rank = process->rank;
    running.first_rank_of_node = process->rank - process->local_rank;
    running.node = process->node;
  }
  orchestrators::ShellRequest shell{.words = words_of(wanted), .id = session_.run_id};
  shell.has_terminal = wanted.has_terminal;
  const auto process_name =
      process ? "rank " + std::to_string(process->rank) + " of '" + step().name + "'"
              : "'" + step().name + "'";
  if (wanted.has_terminal)
    workspace_.note("the shell runs beside " + process_name +
                    ", in the same place and with the same variables; changes that you make here "
                    "affect the running process");
  stop_at_signals();
  const auto code =
      workspace_.await(session_.routes().of(step()).join(std::move(running), std::move(shell)));
  if (is_stopped_) return core::ExitCode::interrupted;
  if (!code)
    throw core::InputError(process_name + " does not run any more, or runs on " +
                               session_.routes().capabilities_of(step()).name +
                               " where nobody can join it",
                           "once attempt " + std::to_string(found_.attempt.number) +
                               " has ended, a shell can be opened in a place like its own");
  return static_cast<core::ExitCode>(*code);
}

/// Opens the shell in a new environment like that of the attempt, which has ended.
core::ExitCode AttemptShell::open_another(const ShellAttempt& wanted) {
  const auto process = process_of(step(), wanted.rank);
  const engine::CodeProvider provider{
      .files = [this](const StepSpec&) -> const std::vector<store::TreeEntry>& { return files_; },
      .failure_advice = {}};
  const engine::Services services{session_.pipeline(),    session_.routes(),  session_.store,
                                  workspace_.artifacts(), workspace_.stats(), provider};
  const engine::OutputsOf outputs_of = [this](const SourceSpec& source) {
    const auto made = steps_.outputs_of()(source);
    const auto may_lack = [&](const InputSpec& input) {
      return input.at_least && std::ranges::find(input.sources, source) != input.sources.end();
    };
    if (made.output || std::ranges::any_of(step().inputs, may_lack)) return made;
    throw core::InputError("the input " + source.step + "." + source.output + " of run " +
                               found_.run.id + " is not on this machine",
                           "`pipe run --step " + source.step + "` makes it again");
  };
  Notices events(workspace_);
  const auto prepared = environment(events);
  report_differences(services, prepared.id, outputs_of);
  if (wanted.has_terminal)
    workspace_.note(
        "attempt " + std::to_string(found_.attempt.number) + " of '" + step().name + "' in run " +
        found_.run.id +
        ": `eval \"$PIPE_COMMAND\"` runs its command; files that the shell writes are removed at "
        "the end");
  stop_at_signals();
  auto shell = request(wanted, events);
  shell.outputs_of = outputs_of;
  if (wanted.rank) shell.process = process;
  const auto result = workspace_.await(engine::open_shell(services, std::move(shell)));
  workspace_.await(session_.routes().settle());
  if (is_stopped_) return core::ExitCode::interrupted;
  if (result.failure) throw core::EnvironmentError(result.failure->message, result.failure->hints);
  return static_cast<core::ExitCode>(result.exit_code.value_or(0));
}

}  // namespace

core::ExitCode open_shell(Workspace& workspace, const ShellAttempt& wanted) {
  auto& recorded = workspace.existing_store();
  auto found = recorded_attempt(recorded, workspace.find_run(recorded, wanted.run), wanted.step,
                                wanted.number);
  auto options = recorded_options(recorded, found.run.id, workspace.options());
  if (!options)
    throw core::InputError("run " + found.run.id + " did not record its options",
                           "run the step again, and open a shell in that run");
  Workspace run_workspace(std::move(*options), workspace.notes());
  const bool is_running = found.step.status == StepStatus::running &&
                          found.attempt.ended == WallTime{} &&
                          Drivers(workspace.driver_context(), recorded).goes_on(found.run);
  return AttemptShell(workspace, run_workspace, std::move(found), is_running).open(wanted);
}

}  // namespace pipeline::driver
