#include "orchestrators/local/local_orchestrator.hpp"

#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include "async/on_pool.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/project.hpp"
#include "core/quantity.hpp"
#include "core/scope_guard.hpp"
#include "core/tail_buffer.hpp"
#include "orchestrators/failure_of.hpp"
#include "orchestrators/local/failure.hpp"
#include "orchestrators/local/gpu_preflight.hpp"
#include "orchestrators/local/installer.hpp"
#include "orchestrators/local/requirement_files.hpp"
#include "orchestrators/local/step_variables.hpp"
#include "orchestrators/local/terminal_process.hpp"
#include "orchestrators/local/workspace.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/usage/kernel_file.hpp"
#include "orchestrators/usage/memory_kills.hpp"
#include "orchestrators/usage/process_waits.hpp"
#include "python_packages/unknown.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::local {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t process_output_tail = 8192;

bool comes_with_environment(const std::string& program) {
  return program.starts_with("python") || program.starts_with("pip");
}

/// Kills processes outside of the attempt's process group, found by the attempt's variables.
void kill_strays(const Attempt& attempt) {
  std::vector<std::string> marks{"PIPE_RUN_ID=" + attempt.run_id,
                                 "PIPE_STEP_NAME=" + attempt.step.name,
                                 "PIPE_ATTEMPT=" + std::to_string(attempt.number)};
  if (attempt.process) marks.push_back("RANK=" + std::to_string(attempt.process->rank));
  std::error_code error;
  for (auto& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    auto name = entry.path().filename().string();
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr !=
            name.data() + name.size() ||
        pid == getpid())
      continue;
    const auto variables = '\0' + usage::process_variables(entry.path());
    auto has = [&](const std::string& mark) {
      return variables.find('\0' + mark + '\0') != variables.npos;
    };
    if (std::all_of(marks.begin(), marks.end(), has)) kill(pid, SIGKILL);
  }
}

/// Returns true if it matters to the step whether there is bash.
bool reads_text(const StepSpec& step) {
  return step.command.shell && step.command.interpreter.empty();
}

/// Equal keys mean equal host contexts: 10,000 steps with the same settings are looked at once.
/// Cheaper to compose than the settings' JSON.
std::string host_key(const StepSpec& step, const std::string& path,
                     const std::vector<std::string>& programs,
                     const std::vector<std::string>& notices) {
  const auto& settings = step.settings->docker;
  std::string key = path;
  const auto add = [&](const std::string& text) { (key += '\0') += text; };
  const auto add_all = [&](const auto& list) {
    for (const auto& text : list) add(text);
    key += '\1';
  };
  add_all(programs);
  add_all(notices);
  if (reads_text(step)) key += '\2';
  if (!VirtualEnvironments::wanted(settings)) return key;
  add_all(settings.requirements.items());
  add_all(settings.pyproject_export_command.items());
  for (const auto& [name, value] : settings.python_package_installer_args)
    add(name), add(value->dump());
  for (const auto& [name, value] : settings.environment) add(name), add(value);
  add(settings.parent_image.value_or(""));
  add(settings.pyproject_path.value_or(""));
  add(settings.local_project_install_command.value_or(""));
  if (settings.local_project_install_command) {
    add(step.code_root.string());
    add_all(step.code.items());
  }
  add(settings.replicate_local_python_environment.value_or(false) ? "replicate" : "");
  add(!settings.python_package_installer                           ? ""
      : *settings.python_package_installer == PackageInstaller::uv ? "uv"
                                                                   : "pip");
  return key;
}

/// Below the state folder: the lock files of reapers, by run.
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
                    .scratch_folders = Workspace::folders()},
      environments_(loop, reaper_, options_.root, options_.state, options_.lock,
                    options_.template_dir),
      sandboxes_(options_.root, options_.state, environments_.folder("").parent_path()) {}

Programs& LocalOrchestrator::programs(const std::string& path) {
  return programs_.try_emplace(path, path, options_.root).first->second;
}

LocalOrchestrator::HostContext& LocalOrchestrator::host(const StepSpec& step) {
  const auto names = step.program ? std::vector<std::string>() : programs_of(step.command);
  const auto path = path_of(step);
  auto notices = ignored_settings(step.settings, capabilities_);
  constexpr const char* gpus = "CUDA_VISIBLE_DEVICES";
  if (settings::gpu_request(step.settings->resources).wanted() && sets_variable(step, gpus))
    notices.push_back(std::string(gpus) +
                      " of the step has no effect: it gets the GPUs that are reserved for it; "
                      "`resources.gpus` names them, and `resources.gpu_ids: index` gives their "
                      "indices");
  auto [entry, is_new] = known_.try_emplace(host_key(step, path, names, notices));
  if (!is_new) return entry->second;
  try {
    entry->second.notices = std::move(notices);
    look_at(entry->second, step, path, names);
  } catch (...) {
    known_.erase(entry);
    throw;
  }
  return entry->second;
}

/// @param names the programs that the step's command names
void LocalOrchestrator::look_at(HostContext& host, const StepSpec& step, const std::string& path,
                                const std::vector<std::string>& names) {
  const auto& settings = step.settings->docker;
  const bool has_environment = VirtualEnvironments::wanted(settings);
  auto& on_path = programs(path);
  utsname machine{};
  uname(&machine);
  core::Hasher hasher;
  hasher.field("local").field(machine.sysname).field(machine.machine);
  host.fingerprint = nlohmann::json::object();
  if (const char* own = std::getenv("PATH"); !own || own != path) host.fingerprint["path"] = path;
  std::string python;
  for (const auto& name : names) {
    if (has_environment && comes_with_environment(name)) continue;
    const auto& program = on_path.find(name);
    hasher.field(name).field(program.identity);
    host.fingerprint["programs"][name] = program.identity;
    if (name.starts_with('/')) host.programs.emplace_back(name);
    if (name.starts_with("python") && !program.file.empty())
      python = program.version.empty() ? "Python" : "Python " + program.version;
  }
  if (reads_text(step)) {
    const auto& bash = on_path.find("bash");
    hasher.field("shell").field(bash.file.empty() ? "sh" : "bash");
    host.fingerprint["programs"]["bash"] = bash.identity;
  }
  host.identity = hasher.finish().hex();
  auto& environment = host.environment;
  environment.id = host.identity;
  environment.ready = true;
  environment.notices = host.notices;
  environment.description =
      python.empty() ? "processes of this machine" : python + " of this machine";
  if (!has_environment) {
    environment.fingerprint = host.fingerprint.dump();
    return;
  }
  host.plan = environments_.plan(step, on_path);
  const auto& plan = *host.plan;
  if (const auto image = python_of_image(settings.parent_image.value_or(""));
      image && !plan.python.version.empty() &&
      !(plan.python.version + ".").starts_with(*image + "."))
    host.notices.push_back("the virtual environments have Python " + plan.python.version +
                           ", the one of this machine; parent_image " + *settings.parent_image +
                           " has " + *image);
  for (const auto& name : plan.looked_up)
    host.fingerprint["programs"][name] = on_path.find(name).identity;
  describe(host);
}

/// Fills in what follows from the plan of the virtual environment.
void LocalOrchestrator::describe(HostContext& host) const {
  const auto& plan = *host.plan;
  auto& environment = host.environment;
  const auto python = plan.python.version.empty() ? "Python" : "Python " + plan.python.version;
  environment.resolves = plan.resolves;
  if (plan.request) environment.requirements = plan.request->requirements;
  environment.notices = host.notices;
  environment.notices.insert(environment.notices.end(), plan.notices.begin(), plan.notices.end());
  if (plan.digest.empty()) {
    environment.id.clear();
    environment.description = python + ", virtual environment with " + plan.summary();
    const auto unknown = python_packages::unknown_of(plan.asked);
    environment.reason = !unknown.empty() ? "not known until it runs: " + unknown
                                          : "its requirements are not in " +
                                                options_.lock->path().filename().string() +
                                                ": they are resolved first";
    return;
  }
  environment.id = core::Hasher().field(host.identity).field(plan.digest).finish().hex();
  environment.description = python + ", virtual environment " + plan.digest.substr(0, 12);
  auto fingerprint = host.fingerprint;
  fingerprint["environment"] = plan.digest;
  if (plan.by_name) environment.fingerprint = fingerprint.dump();
}

async::Task<Environment> LocalOrchestrator::environment(const StepSpec& step) {
  auto& found = host(step);
  if (found.plan) {
    if (found.plan->digest.empty() && python_packages::unknown_of(found.plan->asked).empty()) {
      environments_.look_up(*found.plan);
      describe(found);
    }
    const bool is_ready = environments_.ready(found.plan->digest);
    if (!is_ready && !found.plan->digest.empty())
      found.environment.reason = environments_.reason_to_make(*found.plan);
    found.environment.ready = is_ready;
  }
  co_return found.environment;
}

async::Task<> LocalOrchestrator::lock(const StepSpec& step, EventSink& events,
                                      core::CancelSource& cancel) {
  auto& found = host(step);
  if (!found.plan) co_return;
  const auto unknown = core::only_looks() ? unknown_to_look(found.plan->asked) : std::string();
  if (!unknown.empty())
    events.emit(event::Notice{step.name, "its packages are not known until it runs: " + unknown});
  if (found.plan->is_resolved() || !unknown.empty()) co_return;
  co_await environments_.resolve(*found.plan, step.name, events, cancel);
  describe(found);
}

async::Task<std::string> LocalOrchestrator::packages(const StepSpec& step) {
  const auto& found = host(step);
  co_return found.plan ? environments_.packages(found.plan->digest) : std::string();
}

async::Task<bool> LocalOrchestrator::matches(std::string fingerprint) {
  auto seen = core::parse_json(fingerprint);
  if (!seen.is_object()) co_return false;
  const char* callers = std::getenv("PATH");
  auto& on_path = programs(seen.value("path", callers ? callers : std::string(default_path)));
  if (auto names = seen.find("programs"); names != seen.end())
    for (auto& [name, identity] : names->items())
      if (nlohmann::json(on_path.find(name).identity) != identity) co_return false;
  co_return !seen.contains("environment") || environments_.ready(seen["environment"]);
}

async::Task<Environment> LocalOrchestrator::prepare(const StepSpec& step, EventSink& events,
                                                    core::CancelSource& cancel) {
  co_await lock(step, events, cancel);
  auto& found = host(step);
  if (found.plan && !environments_.ready(found.plan->digest))
    co_await environments_.make(*found.plan, step.name, events, cancel);
  co_return co_await environment(step);
}

/// Reading the kernel's counters takes a tenth of a short step's time, so steps that start at
/// almost the same time share the values.
usage::MemoryKills LocalOrchestrator::kills_so_far() {
  constexpr auto moment = std::chrono::milliseconds(20);
  const auto now = std::chrono::steady_clock::now();
  if (!kills_ || now - kills_read_ > moment) {
    kills_.emplace(kill_counter_);
    kills_read_ = now;
  }
  return *kills_;
}

const fs::path& LocalOrchestrator::python_folder(const fs::path& python3) {
  const auto known = pythons_.find(python3);
  if (known != pythons_.end()) {
    if (access((known->second.path() / "python").c_str(), X_OK) == 0) return known->second.path();
    pythons_.erase(known);  // Removed as an old temporary file.
  }
  return pythons_.emplace(python3, make_python_folder(python3)).first->second.path();
}

StringMap LocalOrchestrator::variables(const Attempt& attempt, const Workspace& workspace,
                                       const HostContext& in) {
  auto variables = passed_on_variables();
  variables.try_emplace("PATH", default_path);
  variables["TMPDIR"] = workspace.temporary().string();
  variables["PYTHONUNBUFFERED"] =
      // Python would otherwise buffer its output to a pipe in blocks.
      "1";
  for (auto& [name, value] : attempt.step.settings->docker.environment) variables[name] = value;
  for (auto& [name, value] : variables_of(attempt, workspace.layout())) variables[name] = value;
  show_gpus(attempt.gpus, attempt.step.settings->resources.gpu_ids.value_or(GpuIds::uuid),
            variables);
  // For a `pipe` that the step starts: the GPUs of this step form a machine of their own, on which
  // all GPUs are free.
  if (!attempt.gpus.empty())
    variables["PIPE_GPU_LOCKS"] = (workspace.temporary() / "pipe-gpus").string();
  auto& path = variables["PATH"];
  if (in.plan) {
    auto folder = environments_.folder(in.plan->digest);
    variables["VIRTUAL_ENV"] = folder.string();
    path.insert(0, (folder / "bin").string() + ":");
  } else if (find_program("python", path).empty()) {
    // Images have a `python`; Debian does not.
    if (auto python3 = find_program("python3", path); !python3.empty())
      path.insert(0, python_folder(python3).string() + ":");
  }
  return variables;
}

async::Task<AttemptResult> LocalOrchestrator::run(const Attempt& attempt) {
  AttemptResult result;
  try {
    result = co_await run_in_place(attempt);
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
                                                std::optional<Workspace>& workspace) {
  if (is_small(attempt.code)) {
    workspace.emplace(attempt, short_folders_);
    co_return;
  }
  if (!pool_) pool_.emplace(1);
  const auto make = [&] { workspace.emplace(attempt, short_folders_); };
  co_await async::on_pool(*pool_, make);
}

ProcessOptions LocalOrchestrator::process_of(const Attempt& attempt, const Workspace& workspace,
                                             const HostContext& in) {
  ProcessOptions process;
  process.environment = variables(attempt, workspace, in);
  auto layout = workspace.layout();
  layout.has_bash = !programs(path_of(attempt.step)).find("bash").file.empty();
  process.arguments = command_of(attempt, layout);
  process.folder = workspace.layout().code;
  for (const auto& gpu : attempt.gpus)
    if (gpu.lock >= 0) process.inherited.push_back(gpu.lock);
  if (!process.arguments.empty())
    process.program =
        find_program(process.arguments[0], process.environment["PATH"], process.folder);
  if (const auto* entered = sandboxes_.of(attempt, workspace, in.programs, process))
    process.sandbox = entered->descriptor();
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

async::Task<AttemptResult> LocalOrchestrator::run_in_place(const Attempt& attempt) {
  const auto& in = host(attempt.step);
  AttemptResult result;
  result.image = in.environment.description;
  result.node = machine_name();
  if (attempt.io.cancel.level() != core::StopLevel::none) {
    result.failure = Failure{FailureKind::cancelled, "was stopped before it started", {}, {}};
    co_return result;
  }
  if (in.plan && !environments_.ready(in.plan->digest))
    throw core::EnvironmentError("the virtual environment " +
                                     environments_.folder(in.plan->digest).string() +
                                     " is not there",
                                 {"run again: it will be made again"});
  std::optional<Workspace> workspace;
  co_await make_workspace(attempt, workspace);
  auto process = process_of(attempt, *workspace, in);
  const auto& path = process.environment["PATH"];
  if (attempt.shell) {
    process.arguments = attempt.shell->words;
    process.program = find_program(process.arguments[0], path, process.folder);
    result.exit_code = run_on_terminal(process);
    co_return result;
  }
  if (process.program.empty()) {
    result.failure =
        not_found(process.arguments.empty() ? "" : process.arguments[0], path, process.folder);
    co_return result;
  }
  const auto limits = limits_of(attempt);
  if (limits) process.control_groups = limits->members();
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
  const auto end = co_await run_process(process, reaper_, attempt.io.cancel,
                                        [&](Stream stream, std::string_view bytes) {
                                          last_output.add(bytes);
                                          attempt.io.log.write(stream, bytes);
                                        });
  result.usage = end.usage;
  if (limits) limits->measure(result.usage);
  // Processes that share the group are counted by the last one.
  if (limits.use_count() > 1) result.usage.peak_memory.reset();
  if (!end.start_error) result.began = end.began, result.ended = end.ended;
  if (end.pipe_held) kill_strays(attempt);
  const bool may_be_killed = !end.stopped && !end.start_error && (!end.exited || end.code != 0);
  const bool is_killed = may_be_killed && !end.exited && end.code == SIGKILL;
  // The machine's count has kills of all kinds of processes; a group with limits has its own count.
  const bool counts = is_killed || kill_counter_ != usage::MemoryKills::of_machine;
  if (may_be_killed && counts && !(limits && limits->counts_kills()) && kills.take())
    result.usage.memory_kills = 1;
  if (end.exited && !end.start_error) result.exit_code = end.code;
  if (!end.exited && !end.start_error) result.signal = end.code;
  result.failure =
      failure_of(end, result.usage.memory_kills.has_value() && may_be_killed, attempt.step);
  if (result.failure)
    explain(*result.failure, end, process, last_output.text(), !attempt.gpus.empty());
  co_return result;
}

async::Task<std::vector<std::string>> LocalOrchestrator::waits_of(const Attempt& attempt) {
  const auto found = running_.find(&attempt);
  if (found == running_.end()) co_return std::vector<std::string>{};
  co_return usage::waits_of_processes(usage::process_tree(found->second));
}

/// The processes of a dead driver end with it, but not at once: its reaper kills them. A run that
/// follows waits for that, so that no step runs twice at a time.
async::Task<> LocalOrchestrator::remove_orphans(
    const std::function<bool(const std::string&)>& is_alive) {
  remove_old_temporary_folders();
  if (options_.state.empty()) co_return;
  std::vector<fs::path> locks;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(options_.state / reapers_folder, none))
    if (!is_alive(entry.path().filename().string())) locks.push_back(entry.path());
  constexpr int max_looks = 5000;  // Looks of 2 ms each; a process that cannot be killed is left.
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (const auto& lock : locks)
    for (int looks = 0; looks < max_looks && !ProcessReaper::has_ended(lock); ++looks) {
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
