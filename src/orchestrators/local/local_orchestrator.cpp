#include "orchestrators/local/local_orchestrator.hpp"

#include <signal.h>
#include <unistd.h>

#include "async/on_pool.hpp"
#include "core/error.hpp"
#include "core/scope_guard.hpp"
#include "core/tail_buffer.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"
#include "orchestrators/failure_of.hpp"
#include "orchestrators/local/gpu_preflight.hpp"
#include "orchestrators/local/running_processes.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/processes/environment_use.hpp"
#include "orchestrators/processes/failure.hpp"
#include "orchestrators/processes/step_variables.hpp"
#include "orchestrators/processes/terminal_process.hpp"
#include "orchestrators/processes/workspace.hpp"
#include "orchestrators/usage/kernel_file.hpp"
#include "orchestrators/usage/memory_kills.hpp"
#include "orchestrators/usage/process_activity.hpp"
#include "orchestrators/usage/process_waits.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::local {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t process_output_tail = 8192;  // Bytes.

/// Kills the attempt's processes that have left its process group; finds them by the attempt's
/// variables.
void kill_strays(const Attempt& attempt) {
  RunningProcess process{attempt.run_id, attempt.step.name, attempt.number};
  if (attempt.process) process.rank = attempt.process->rank;
  for (const auto pid : processes_of(process)) kill(pid, SIGKILL);
}

/// Returns the options that execute the words in the folder and with the variables of the process.
processes::ProcessOptions options_beside(pid_t process, std::vector<std::string> words) {
  processes::ProcessOptions beside;
  std::error_code error;
  beside.environment = variables_of_process(process);
  beside.folder = fs::read_symlink("/proc/" + std::to_string(process) + "/cwd", error);
  beside.arguments = std::move(words);
  beside.program =
      processes::find_program(beside.arguments.at(0), beside.environment["PATH"], beside.folder);
  return beside;
}

/// The folder in the state folder with the lock files of process reapers, named by run.
constexpr auto reapers_folder = "reapers";

fs::path reaper_lock(const OrchestratorOptions& options) {
  return options.state.empty() || options.run_id.empty()
             ? fs::path()
             : options.state / reapers_folder / options.run_id;
}

}  // namespace

LocalOrchestrator::LocalOrchestrator(asio::io_context& loop, OrchestratorOptions options)
    : reaper_(reaper_lock(options)),
      options_(std::move(options)),
      groups_(find_control_groups()),
      capabilities_{.name = "local",
                    .traits = entry_of("local").traits,
                    .gpus = true,
                    .explicit_devices = true,
                    .shells = true,
                    .memory_limits = !groups_.memory.empty(),
                    .cpu_limits = !groups_.cpu.empty(),
                    .scratch_folders = processes::Workspace::folders()},
      environments_(loop, reaper_, options_, capabilities_,
                    [this](const fs::path& python3) { return python_folder(python3); }),
      sandboxes_(options_.root, options_.state, processes::environments_folder()) {}

async::Task<Environment> LocalOrchestrator::environment(const StepSpec& step) {
  return environments_.environment(step);
}
async::Task<std::string> LocalOrchestrator::packages(const StepSpec& step) {
  return environments_.packages(step);
}
async::Task<bool> LocalOrchestrator::matches(std::string fingerprint) {
  return environments_.matches(std::move(fingerprint));
}
async::Task<Environment> LocalOrchestrator::prepare(const StepSpec& step, EventSink& events,
                                                    core::CancelSource& cancel) {
  return environments_.prepare(step, events, cancel);
}
async::Task<> LocalOrchestrator::lock(const StepSpec& step, EventSink& events,
                                      core::CancelSource& cancel) {
  return environments_.lock(step, events, cancel);
}

/// Reading the kernel's counters takes a tenth of a short step's time, so steps that start at
/// almost the same time share the values.
usage::MemoryKills LocalOrchestrator::kills_so_far() {
  constexpr auto max_age = std::chrono::milliseconds(20);
  const auto now = std::chrono::steady_clock::now();
  if (!kills_ || now - kills_read_ > max_age) {
    kills_.emplace(kill_counter_);
    kills_read_ = now;
  }
  return *kills_;
}

const fs::path& LocalOrchestrator::python_folder(const fs::path& python3) {
  const auto known = pythons_.find(python3);
  if (known != pythons_.end()) {
    if (access((known->second.path() / "python").c_str(), X_OK) == 0) return known->second.path();
    pythons_.erase(known);  // Another program removed the folder as an old temporary file.
  }
  return pythons_.emplace(python3, processes::make_python_folder(python3)).first->second.path();
}

StringMap LocalOrchestrator::variables(const Attempt& attempt,
                                       const processes::Workspace& workspace,
                                       const processes::HostContext& host) {
  auto variables =
      environments_.variables(attempt, workspace.layout(), workspace.temporary(), host);
  processes::show_gpus(attempt.gpus,
                       attempt.step.settings->resources.gpu_ids.value_or(GpuIds::uuid), variables);
  // A `pipe` that the step starts must treat the GPUs of this step as free, so it gets its own
  // folder of GPU reservations.
  if (!attempt.gpus.empty())
    variables["PIPE_GPU_LOCKS"] = (workspace.temporary() / "pipe-gpus").string();
  return variables;
}

async::Task<AttemptResult> LocalOrchestrator::run(const Attempt& attempt) {
  AttemptResult result;
  try {
    result = co_await run_or_throw(attempt);
  } catch (const core::EnvironmentError& error) {
    result.failure = orchestrators::failure_of(error);
  } catch (const core::InputError& error) {
    result.failure = Failure{FailureKind::not_started, error.what(), {}, {}};
  } catch (const fs::filesystem_error& error) {
    result.failure = Failure{FailureKind::environment, error.what(), {}, {}};
  }
  co_return result;
}

/// Copies large code on another thread.
async::Task<> LocalOrchestrator::make_workspace(const Attempt& attempt,
                                                std::optional<processes::Workspace>& workspace) {
  if (processes::is_small(attempt.code)) {
    workspace.emplace(attempt, short_folders_);
    co_return;
  }
  if (!pool_) pool_.emplace(1);
  const auto make = [&] { workspace.emplace(attempt, short_folders_); };
  co_await async::on_pool(*pool_, make);
}

processes::ProcessOptions LocalOrchestrator::process_of(const Attempt& attempt,
                                                        const processes::Workspace& workspace,
                                                        const processes::HostContext& host) {
  processes::ProcessOptions process;
  process.environment = variables(attempt, workspace, host);
  process.arguments = environments_.command(attempt, workspace.layout());
  process.folder = workspace.layout().code;
  for (const auto& gpu : attempt.gpus)
    if (gpu.lock >= 0) process.inherited.push_back(gpu.lock);
  if (!process.arguments.empty())
    process.program =
        processes::find_program(process.arguments[0], process.environment["PATH"], process.folder);
  process.sandbox = sandboxes_.sandbox_of(attempt, workspace, host.programs, process);
  return process;
}

std::shared_ptr<LimitGroup> LocalOrchestrator::limits_of(const Attempt& attempt) {
  const auto& resources = attempt.step.settings->resources;
  if (!(resources.memory && capabilities_.memory_limits) &&
      !(resources.cpu_count && capabilities_.cpu_limits))
    return nullptr;
  auto name =
      "pipe-" + attempt.run_id + "-" + attempt.step.name + "-" + std::to_string(attempt.number);
  if (attempt.process) name += "-node-" + std::to_string(attempt.process->node);
  return limits_.take(groups_, name, resources);
}

bool LocalOrchestrator::was_killed_for_memory(const processes::ProcessEnd& end,
                                              const LimitGroup* limits,
                                              const usage::MemoryKills& kills) const {
  if (limits && limits->counts_kills()) return false;  // LimitGroup::measure() has reported it.
  // The machine's counter includes kills of foreign processes, so it counts only for a process that
  // SIGKILL ended.
  const bool is_killed = !end.exited && end.code == SIGKILL;
  return (is_killed || kill_counter_ != usage::MemoryKills::of_machine) && kills.take();
}

async::Task<AttemptResult> LocalOrchestrator::run_or_throw(const Attempt& attempt) {
  const auto& host = environments_.host(attempt.step);
  AttemptResult result;
  result.image = host.environment.description;
  result.node = machine_name();
  if (attempt.io.cancel.level() != core::StopLevel::none) {
    result.failure = Failure{FailureKind::cancelled, "was stopped before it started", {}, {}};
    co_return result;
  }
  environments_.require_ready(host);
  std::optional<processes::Workspace> workspace;
  co_await make_workspace(attempt, workspace);
  auto process = process_of(attempt, *workspace, host);
  const auto& path = process.environment["PATH"];
  if (attempt.shell) {
    process.arguments = attempt.shell->words;
    process.program = processes::find_program(process.arguments[0], path, process.folder);
    result.exit_code = processes::run_on_terminal(process);
    co_return result;
  }
  if (process.program.empty()) {
    result.failure = processes::not_found(process.arguments.empty() ? "" : process.arguments[0],
                                          path, process.folder);
    co_return result;
  }
  const auto limits = limits_of(attempt);
  if (limits) process.control_groups = limits->member_files();
  if (!sampler_) sampler_.emplace(1);
  process.measured_on = &*sampler_;
  if (!attempt.gpus.empty() && settings::gpu_request(attempt.step.settings->resources).preflight) {
    result.failure = co_await look_at_gpus(attempt, process.environment, reaper_);
    if (result.failure) co_return result;
  }

  const auto kills = kills_so_far();
  core::TailBuffer last_output(process_output_tail);
  const core::ScopeGuard is_over([&] { running_.erase(&attempt); });
  process.on_start = [&](pid_t pid) { running_[&attempt] = pid; };
  const auto end = co_await processes::run_process(process, reaper_, attempt.io.cancel,
                                                   [&](Stream stream, std::string_view bytes) {
                                                     last_output.add(bytes);
                                                     attempt.io.log.write(stream, bytes);
                                                   });
  result.usage = end.usage;
  if (limits) limits->measure(result.usage);
  // The peak is that of all processes in the group, so only the last process to end reports it.
  if (limits.use_count() > 1) result.usage.peak_memory.reset();
  if (!end.start_error) {
    result.began = end.began;
    result.ended = end.ended;
  }
  if (end.pipe_held) kill_strays(attempt);
  const bool may_be_killed = !end.stopped && !end.start_error && (!end.exited || end.code != 0);
  if (may_be_killed && was_killed_for_memory(end, limits.get(), kills))
    result.usage.memory_kills = 1;
  if (end.exited && !end.start_error) result.exit_code = end.code;
  if (!end.exited && !end.start_error) result.signal = end.code;
  result.failure = processes::failure_of(
      end, result.usage.memory_kills.has_value() && may_be_killed, attempt.step);
  if (result.failure)
    processes::explain(*result.failure, end, process, last_output.text(), !attempt.gpus.empty());
  co_return result;
}

async::Task<std::vector<std::string>> LocalOrchestrator::waits_of(const Attempt& attempt) {
  const auto found = running_.find(&attempt);
  if (found == running_.end()) co_return std::vector<std::string>{};
  co_return usage::waits_of_processes(usage::process_tree(found->second));
}

async::Task<std::optional<core::Activity>> LocalOrchestrator::activity_of(const Attempt& attempt) {
  const auto found = running_.find(&attempt);
  if (found == running_.end()) co_return std::nullopt;
  co_return usage::activity_of_processes(usage::process_tree(found->second));
}

/// The joining process gets the limits of the step's node, but is not measured as a part of it.
async::Task<std::optional<int>> LocalOrchestrator::join(RunningProcess process,
                                                        ShellRequest shell) {
  const auto first = first_process_of(process);
  if (!first) co_return std::nullopt;
  const auto groups = limit_groups_of(*first);
  auto beside = options_beside(*first, std::move(shell.words));
  for (const auto& group : groups) beside.control_groups.push_back(group.get());
  if (const auto kind = core::variable("TERM"); shell.has_terminal && !kind.empty())
    beside.environment["TERM"] = kind;
  co_return processes::run_on_terminal(beside);
}

async::Task<std::optional<std::string>> LocalOrchestrator::ask(RunningProcess process,
                                                               std::vector<std::string> words) {
  constexpr std::size_t max_printed = 64 << 10;
  const auto first = first_process_of(process);
  if (!first) co_return std::nullopt;
  const auto beside = options_beside(*first, std::move(words));
  if (beside.program.empty()) co_return std::nullopt;
  std::string printed;
  core::CancelSource cancel;
  const processes::OutputCallback keep = [&](Stream, std::string_view bytes) {
    core::append_bounded(printed, bytes, max_printed);
  };
  const auto end = co_await processes::run_process(beside, reaper_, cancel, keep);
  if (end.start_error || !end.exited || end.code != 0) co_return std::nullopt;
  co_return printed;
}

/// The reaper of a dead driver kills the driver's processes, which may take a while. Waits for
/// that, so that the next run does not run a step while its process is still alive.
async::Task<> LocalOrchestrator::remove_orphans(
    const std::function<bool(const std::string&)>& is_alive) {
  processes::remove_old_temporary_folders();
  if (options_.state.empty()) co_return;
  std::vector<fs::path> locks;
  std::error_code none;
  // At the end of a run, the run is no longer alive, but its own reaper still is.
  const auto own = reaper_lock(options_);
  for (const auto& entry : fs::directory_iterator(options_.state / reapers_folder, none))
    if (entry.path() != own && !is_alive(entry.path().filename().string()))
      locks.push_back(entry.path());
  // Ten seconds, at 2 ms a look; a process that cannot be killed is left.
  constexpr int max_looks = 5000;
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (const auto& lock : locks)
    for (int looks = 0; looks < max_looks && !processes::ProcessReaper::has_ended(lock); ++looks) {
      pause.expires_after(std::chrono::milliseconds(2));
      co_await pause.async_wait(asio::use_awaitable);
    }
}

}  // namespace pipeline::orchestrators::local

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_local_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options) {
  return std::make_unique<local::LocalOrchestrator>(loop, std::move(options));
}

}  // namespace pipeline::orchestrators
