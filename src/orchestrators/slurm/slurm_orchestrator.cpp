#include "orchestrators/slurm/slurm_orchestrator.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "agent/programs.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/log.hpp"
#include "core/random_name.hpp"
#include "core/scope_guard.hpp"
#include "core/text.hpp"
#include "model/step_span.hpp"
#include "orchestrators/agent_reports.hpp"
#include "orchestrators/failure_of.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/processes/host_environments.hpp"
#include "orchestrators/processes/workspace.hpp"
#include "orchestrators/removals.hpp"
#include "orchestrators/shared_file.hpp"
#include "orchestrators/slurm/allocation.hpp"
#include "orchestrators/slurm/beside_job.hpp"
#include "orchestrators/slurm/job_run.hpp"
#include "orchestrators/slurm/preflight.hpp"
#include "orchestrators/slurm/program_files.hpp"
#include "orchestrators/slurm/squashfs_files.hpp"
#include "orchestrators/slurm/wait_forecast.hpp"
#include "orchestrators/usage/agent_waits.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t digest_length = 16;
/// Begins the fingerprints of steps in images; other fingerprints are JSON.
constexpr std::string_view image_prefix = "image ";

Capabilities capabilities_of_slurm() {
  Capabilities capabilities;
  capabilities.name = "slurm";
  capabilities.traits = entry_of("slurm").traits;
  capabilities.gpus = capabilities.memory_limits = capabilities.cpu_limits = true;
  capabilities.gpus_of_this_machine = capabilities.on_this_machine = false;
  capabilities.outlives_driver = capabilities.reports_begin = capabilities.shells = true;
  capabilities.infrastructure_retries = 3;
  capabilities.open_files = 1;  // The step's log; other files are open only for a moment.
  return capabilities;
}

/// Returns a sentence on each setting that has no effect on a step in an image.
std::vector<std::string> notices_of_image(const StepSpec& step) {
  const auto& docker = step.settings->docker;
  std::vector<std::string> notices;
  const auto add = [&](bool is_set, const char* name) {
    if (is_set) notices.push_back(std::string("`docker.") + name + "` has no effect on Slurm");
  };
  add(docker.user.has_value(), "user");
  add(docker.network.has_value(), "network");
  add(!docker.run_args.empty(), "run_args");
  return notices;
}

class SlurmOrchestrator : public Orchestrator {
 public:
  SlurmOrchestrator(asio::io_context& loop, OrchestratorOptions options)
      : loop_(loop),
        options_(std::move(options)),
        environments_(loop, reaper_, options_, capabilities_,
                      [this](const fs::path& python3) { return python_folder(python3); }),
        runtime_(connection_field(options_.connection, "container_runtime")) {
    if (!runtime_.empty()) check_container_runtime(runtime_);
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  async::Task<Environment> environment(const StepSpec& step) override {
    auto environment = co_await provider_of(step).environment(step);
    complete(environment, step);
    co_return environment;
  }
  async::Task<std::string> packages(const StepSpec& step) override {
    return provider_of(step).packages(step);
  }
  async::Task<bool> matches(std::string fingerprint) override {
    if (!fingerprint.starts_with(image_prefix))
      return environments_.matches(std::move(fingerprint));
    return matches_image(fingerprint.substr(image_prefix.size()));
  }
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override {
    auto environment = co_await provider_of(step).prepare(step, events, cancel);
    complete(environment, step);
    co_return environment;
  }
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override {
    return provider_of(step).lock(step, events, cancel);
  }

  async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) override {
    if (!is_in_allocation_) check_state_folder(fs::absolute(options_.state).string());
    co_await look_at_cluster();
    const auto partition = connection_field(options_.connection, "partition");
    if (!partition.empty()) check_partition(partitions_, partition);
    auto found = check_steps(partitions_, options_.connection, steps);
    for (const auto* step : steps)
      if (runs_in_image(*step)) co_await images().check(*step, found);
    if (found.empty()) co_await check_options(steps, found);
    co_return found;
  }

  async::Task<std::vector<std::string>> expected_waits(
      const std::vector<const StepSpec*>& steps) override {
    return forecast_waits(client_, options_.connection, steps);
  }

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    AttemptResult result;
    const core::ScopeGuard has_ended([this, &attempt] { reports_.forget(attempt); });
    try {
      if (partitions_.empty()) co_await look_at_cluster();
      auto& context = context_of(attempt.shell ? attempt.shell->id : attempt.run_id);
      const Use use(context);
      if (attempt.shell)
        result = co_await run_shell(context, attempt);
      else
        result = co_await run_job(context, attempt, reports_.of(attempt));
    } catch (const SlurmError& error) {
      result.failure = Failure{FailureKind::infrastructure, error.what(), error.advice(), {}};
    } catch (const core::EnvironmentError& error) {
      result.failure = orchestrators::failure_of(error);
    }
    result.image = (co_await provider_of(attempt.step).environment(attempt.step)).description;
    co_return result;
  }

  async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) override {
    const auto waits = co_await reports_.waits_of(attempt);
    co_return usage::read_agent_waits(waits);
  }

  async::Task<std::optional<core::Activity>> activity_of(const Attempt& attempt) override {
    co_return reports_.activity_of(attempt);
  }

  async::Task<NodeAddresses> connect_nodes(const Attempt& attempt, unsigned nodes,
                                           unsigned ranks) override {
    if (partitions_.empty()) co_await look_at_cluster();
    auto made = co_await Orchestrator::connect_nodes(attempt, nodes, ranks);
    connect_gang(attempt, made);
    auto& gangs = context_of(attempt.run_id).gangs;
    gangs.try_emplace(job_name_of(attempt), loop_.get_executor());
    co_return made;
  }

  async::Task<> disconnect_nodes(const Attempt& attempt) override {
    context_of(attempt.run_id).gangs.erase(job_name_of(attempt));
    co_return;
  }

  async::Task<std::optional<int>> join(RunningProcess process, ShellRequest shell) override {
    const auto has_terminal = shell.has_terminal;
    const auto command = co_await beside(std::move(process), std::move(shell));
    if (command.empty()) co_return std::nullopt;
    co_return run_on_streams(client_.login(), command, has_terminal);
  }

  async::Task<std::optional<std::string>> ask(RunningProcess process,
                                              std::vector<std::string> words) override {
    ShellRequest request{.words = std::move(words)};
    try {
      auto command = co_await beside(std::move(process), std::move(request));
      if (!command.empty()) co_return co_await client_.output_of(std::move(command));
    } catch (const SlurmError& error) {  // The command in the job may have failed.
      core::log::info(error.what());
    }
    co_return std::nullopt;
  }

  async::Task<std::string> service() override {
    co_await ask_for_partitions();
    if (client_.login().is_remote() && fs::is_directory(options_.state))
      co_await look_for_shared_folder();
    std::vector<std::string> command{"sbatch", "--version"};
    const auto version = co_await client_.output_of(std::move(command));
    const auto where = client_.login().is_remote() ? " on " + client_.login().host() : "";
    co_return last_line(version) + where + ", partitions: " +
        core::joined(partitions_, ", ", [](const Partition& one) { return one.name; });
  }

  async::Task<> remove_image_files(
      const std::function<bool(const fs::path&, Bytes)>& is_to_go) override {
    const auto files = squashfs_files();
    if (files.empty()) co_return;
    const auto jobs = co_await client_.jobs_of_user();
    if (std::ranges::any_of(jobs, [](const auto& job) { return job.comment.starts_with("pipe:"); }))
      throw core::EnvironmentError("jobs of yours that `pipe` has submitted may use them");
    for (const auto& file : files) {
      std::error_code error;
      const auto bytes = fs::file_size(file, error);
      if (is_to_go(file, error ? 0 : bytes)) remove_squashfs(file);
    }
  }

  async::Task<> settle() override {
    co_await removals_.settle();
    for (auto& [id, run] : runs_) {
      const Use use(run.context);
      co_await run.monitor.settle();
    }
    // Folders are removed now: afterwards the run is recorded as ended, and is not looked at again.
    for (auto each = runs_.begin(); each != runs_.end();) {
      const auto& context = each->second.context;
      const bool is_over = context.uses == 0 && context.gangs.empty() &&
                           context.monitor.is_settled() && each->second.remove_folders();
      each = is_over ? runs_.erase(each) : std::next(each);
    }
  }

  async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                unsigned number) override {
    const auto paths = paths_of(folder_of(run_id), job_name(run_id, step, number));
    co_await end_jobs_of(client_, paths);
    const auto [gangs, is_new] = left_gangs_.try_emplace(run_id);
    if (is_new) gangs->second = gangs_in(folder_of(run_id));
    if (gangs->second.contains(paths.name))
      remove_gang_files(paths);
    else
      remove_files(paths);
  }

  /// Asks Slurm for jobs only if runs of this state folder have left folders.
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override {
    std::vector<fs::path> dead;
    for (const auto& folder : core::entries_of(jobs_folder()))
      if (fs::is_directory(folder / "events") && !is_alive(folder.filename().string()))
        dead.push_back(folder);
    if (dead.empty()) co_return;
    const auto jobs = co_await client_.jobs_of_user();
    std::set<std::string> orphans;
    for (const auto& job : jobs)
      if (const auto run = run_of_comment(job.comment, owner()); run && !is_alive(*run))
        orphans.emplace(array_of(job.id));  // All tasks of an array are of one run.
    std::vector<std::string> ids(orphans.begin(), orphans.end());
    co_await client_.cancel_all(std::move(ids), std::vector<std::string>());
    for (const auto& folder : dead) core::remove_tree(folder);
  }

 private:
  /// Returns the command that runs the shell beside the process; no words in an allocation, where
  /// a job step does not have the job's number that srun needs.
  async::Task<std::vector<std::string>> beside(RunningProcess process, ShellRequest shell) {
    if (is_in_allocation_) co_return std::vector<std::string>();
    auto folder = folder_of(process.run_id);
    co_return co_await command_beside(client_, agent(), std::move(folder), std::move(process),
                                      std::move(shell));
  }

  bool runs_in_image(const StepSpec& step) const { return !runtime_.empty() && names_image(step); }

  /// Creates ImageFiles on the first use, because it connects to an engine.
  ImageFiles& images() {
    if (!images_) images_.emplace(loop_, reaper_, options_, runtime_);
    return *images_;
  }

  EnvironmentProvider& provider_of(const StepSpec& step) {
    if (runs_in_image(step)) return images();
    return environments_;
  }

  async::Task<bool> matches_image(std::string fingerprint) {
    if (runtime_.empty()) co_return false;
    co_return co_await images().matches(std::move(fingerprint));
  }

  /// Adds Slurm's notices, and marks the fingerprint of a step that runs in an image.
  void complete(Environment& environment, const StepSpec& step) const {
    std::ranges::move(ignored_conditions(step.settings->resources),
                      std::back_inserter(environment.notices));
    if (!runs_in_image(step)) return;
    if (!environment.fingerprint.empty()) environment.fingerprint.insert(0, image_prefix);
    for (auto& notice : notices_of_image(step)) environment.notices.push_back(std::move(notice));
  }

  /// Reports steps whose options Slurm refuses; asks once for each combination of options.
  async::Task<> check_options(const std::vector<const StepSpec*>& steps,
                              std::vector<core::Diagnostic>& found) {
    std::map<std::vector<std::string>, std::string> refusals;
    for (const auto* step : steps) {
      const auto options = chosen_options(step->settings->slurm, options_.connection);
      if (options.empty()) continue;
      const auto [entry, is_new] = refusals.try_emplace(options);
      auto& refusal = entry->second;
      if (is_new) refusal = co_await client_.refusal(options);
      if (refusal.empty()) continue;
      core::Diagnostic diagnostic{
          .code = "slurm-resources",
          .message = "'" + step->name + "' cannot run: " + refusal,
          .span = model::span_of(*step),
          .notes = {"its options of sbatch: " + core::joined(options, " ")}};
      if (names_association(refusal)) {
        if (!associations_) associations_ = co_await ask_for_associations();
        explain_association(*associations_, options, diagnostic);
      }
      found.push_back(std::move(diagnostic));
    }
  }

  async::Task<> look_at_cluster() {
    co_await ask_for_partitions();
    if (client_.login().is_remote()) co_await look_for_shared_folder();
    limits_ = co_await client_.limits();
  }

  async::Task<> ask_for_partitions() {
    std::vector<std::string> command{"sinfo", "--noheader", "--all",
                                     std::string("--format=") + partition_format};
    std::string output;
    try {
      output = co_await client_.output_of(std::move(command));
    } catch (const SlurmError&) {
      throw;
    } catch (const core::EnvironmentError& error) {
      throw core::EnvironmentError(
          std::string("Slurm's commands cannot be run: ") + error.what(),
          {"run this on a login node of the cluster, or put sbatch, squeue, scancel and sinfo on "
           "PATH",
           "`host: ssh://LOGIN-NODE` in a profile uses those of the login node"});
    }
    partitions_ = parse_partitions(output);
  }

  /// Returns the accounts and QOS of the user; none if Slurm does not list them.
  async::Task<Associations> ask_for_associations() {
    Associations found;
    try {
      std::vector<std::string> id{"id", "-un"};
      const auto user = co_await client_.output_of(std::move(id));
      std::vector<std::string> command{"sacctmgr", "--noheader", "--parsable2", "show",
                                       "associations"};
      command.push_back("user=" + last_line(user));
      command.emplace_back("format=account,qos");
      const auto output = co_await client_.output_of(std::move(command));
      found = parse_associations(output);
    } catch (const core::EnvironmentError&) {  // Without slurmdbd, there is no list.
    }
    co_return found;
  }

  /// Throws EnvironmentError unless the login node sees this machine's state folder.
  async::Task<> look_for_shared_folder() {
    // Drivers of several machines may share the folder, so their process ids can be equal.
    const auto file = jobs_folder() / ("seen-by-" + core::random_name());
    core::make_folders(jobs_folder());
    core::write_file_atomically(file, owner());
    std::string seen;
    std::vector<std::string> command{"cat", file.string()};
    try {
      seen = co_await client_.output_of(std::move(command));
    } catch (const SlurmError& error) {
      core::remove_tree(file);
      if (error.may_have_worked()) throw;
    }
    core::remove_tree(file);
    if (last_line(seen) != owner())
      throw core::EnvironmentError(
          client_.login().host() + " does not see the state folder " +
              fs::absolute(options_.state).string() + " of this machine",
          {"mount the cluster's shared file system on this machine at the path that it has there, "
           "and set PIPE_HOME and PIPE_CACHE_DIR to folders in it"});
  }

  fs::path jobs_folder() const { return fs::absolute(options_.state) / "slurm"; }
  fs::path folder_of(const std::string& run) const { return jobs_folder() / run; }

  const std::string& owner() {
    if (owner_.empty()) owner_ = options_.owner.empty() ? owner_of(options_.state) : options_.owner;
    return owner_;
  }

  /// Returns the agent as a file beside the runs' other files, where nodes find it.
  fs::path agent() {
    const auto program = agent::agent_program();
    const auto file =
        jobs_folder() / ("agent-" + core::sha256(program).hex().substr(0, digest_length));
    write_shared_file(file, program, program_mode);
    return file;
  }

  /// Returns a folder for PATH in which `python` is the program `python3`. `python` is a script
  /// instead of a link, because Python finds its home by the path of its command.
  fs::path python_folder(const fs::path& python3) {
    const auto folder =
        jobs_folder() / ("python-" + core::sha256(python3.string()).hex().substr(0, digest_length));
    const auto script = "#!/bin/sh\nexec " + core::shell_quote(python3.string()) + " \"$@\"\n";
    write_shared_file(folder / "python", script, program_mode);
    return folder;
  }

  /// The objects that the jobs of a run share, and the folders of their files.
  struct RunState {
    RunState(SlurmOrchestrator& slurm, const std::string& run)
        : agent(slurm.agent()),
          monitor(slurm.client_, slurm.folder_of(run) / "events", slurm.loop_.get_executor()),
          submitter(slurm.client_, slurm.folder_of(run), agent, slurm.limits_),
          context{.client = slurm.client_,
                  .monitor = monitor,
                  .submitter = submitter,
                  .environments = slurm.environments_,
                  .short_folders = slurm.short_folders_,
                  .removals = slurm.removals_,
                  .agent = agent,
                  .folder = slurm.folder_of(run),
                  .owner = slurm.owner(),
                  .connection = slurm.options_.connection,
                  .gres_types = gres_types_of(slurm.partitions_),
                  .images = slurm.runtime_.empty() ? nullptr : &slurm.images(),
                  .container_runtime = slurm.runtime_} {
      core::make_folders(slurm.folder_of(run) / "events");
      core::make_folders(slurm.folder_of(run) / "jobs");
    }
    ~RunState() { remove_folders(); }
    /// Removes the run's folders. Returns false, and keeps them, if they have files of attempts
    /// that a later driver may join. The folder `events` goes last, because remove_orphans() looks
    /// for it.
    bool remove_folders() {
      std::error_code error;
      fs::remove(context.folder / "jobs", error);
      if (fs::exists(context.folder / "jobs", error)) return false;
      fs::remove_all(context.folder / "arrays", error);
      fs::remove_all(context.folder / programs_folder, error);
      fs::remove(context.folder / "events", error);
      fs::remove(context.folder, error);
      return true;
    }
    RunState(const RunState&) = delete;
    RunState& operator=(const RunState&) = delete;
    fs::path agent;
    JobMonitor monitor;
    Submitter submitter;
    JobContext context;
  };

  JobContext& context_of(const std::string& run) {
    return runs_.try_emplace(run, *this, run).first->second.context;
  }

  asio::io_context& loop_;
  OrchestratorOptions options_;
  const Capabilities capabilities_ = capabilities_of_slurm();
  processes::ProcessReaper reaper_;  ///< Starts installers, which run on this machine.
  processes::HostEnvironments environments_;
  const std::string runtime_;         ///< The container runtime; empty: no step runs in an image.
  std::optional<ImageFiles> images_;  ///< Set by images().
  processes::ShortFolders short_folders_;
  /// Steps run in the job that this process is in (AllocationClient).
  const bool is_in_allocation_ = !connection_field(options_.connection, "within").empty();
  const std::unique_ptr<Client> owned_client_ = client_of(options_.connection);
  Client& client_ = *owned_client_;
  Removals removals_;
  AgentReports reports_;
  std::map<std::string, RunState> runs_;  ///< Keyed by run; there is one, except in tests.
  /// Names of jobs of steps with nodes that dead drivers have left, keyed by run. Read once,
  /// because thousands of attempts may be discarded.
  std::map<std::string, std::set<std::string>> left_gangs_;
  std::vector<Partition> partitions_;
  ArrayLimits limits_;
  std::optional<Associations> associations_;  ///< Set by ask_for_associations().
  std::string owner_;
};

}  // namespace

}  // namespace pipeline::orchestrators::slurm

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_slurm_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options) {
  return std::make_unique<slurm::SlurmOrchestrator>(loop, std::move(options));
}

}  // namespace pipeline::orchestrators
