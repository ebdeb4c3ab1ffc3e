/// @file
/// Runs steps as plain processes of this machine.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "orchestrators/local/limits.hpp"
#include "orchestrators/local/sandboxes.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/host_environments.hpp"
#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/process_reaper.hpp"
#include "orchestrators/processes/workspace.hpp"
#include "orchestrators/usage/memory_kills.hpp"

namespace pipeline::orchestrators::local {

class LocalOrchestrator : public Orchestrator {
 public:
  LocalOrchestrator(asio::io_context& loop, OrchestratorOptions options);
  const Capabilities& capabilities() const override { return capabilities_; }
  async::Task<Environment> environment(const StepSpec& step) override;
  async::Task<std::string> packages(const StepSpec& step) override;
  async::Task<bool> matches(std::string fingerprint) override;
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override;
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override;
  async::Task<AttemptResult> run(const Attempt& attempt) override;
  async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) override;
  async::Task<std::optional<core::Activity>> activity_of(const Attempt& attempt) override;
  async::Task<std::optional<int>> join(RunningProcess process, ShellRequest shell) override;
  async::Task<std::optional<std::string>> ask(RunningProcess process,
                                              std::vector<std::string> words) override;
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override;

 private:
  async::Task<AttemptResult> run_or_throw(const Attempt& attempt);
  async::Task<> make_workspace(const Attempt& attempt,
                               std::optional<processes::Workspace>& workspace);
  /// Returns the options of the process that runs the step's command. The program is empty if it
  /// was not found.
  processes::ProcessOptions process_of(const Attempt& attempt,
                                       const processes::Workspace& workspace,
                                       const processes::HostContext& host);
  /// Returns the control group with the attempt's limits; null if the step sets no limit that this
  /// user's control groups can have. Shared, because the processes of a node are in one group.
  std::shared_ptr<LimitGroup> limits_of(const Attempt& attempt);
  /// Returns the counter of memory kills as it was at most 20 ms ago.
  usage::MemoryKills kills_so_far();
  /// Returns true if the kernel killed a process of the ended attempt for lack of memory.
  /// @param kills the counter as it was before the attempt's process started
  bool was_killed_for_memory(const processes::ProcessEnd& end, const LimitGroup* limits,
                             const usage::MemoryKills& kills) const;
  /// Returns a folder for PATH in which `python` is the program `python3`.
  const std::filesystem::path& python_folder(const std::filesystem::path& python3);
  /// Returns the variables of the process; PATH begins with the virtual environment.
  StringMap variables(const Attempt& attempt, const processes::Workspace& workspace,
                      const processes::HostContext& host);

  processes::ProcessReaper reaper_;
  OrchestratorOptions options_;
  ControlGroups groups_;
  LimitGroups limits_;
  Capabilities capabilities_;
  processes::HostEnvironments environments_;
  std::optional<asio::thread_pool> pool_;     ///< Copies large code; created when needed.
  std::optional<asio::thread_pool> sampler_;  ///< Reads the memory of the steps' processes.
  /// Keyed by the program that is `python`.
  std::map<std::filesystem::path, processes::ShortFolder> pythons_;
  processes::ShortFolders short_folders_;
  Sandboxes sandboxes_;
  /// File that counts memory kills in this process's own control group, so that kills in other
  /// groups are not attributed to a step.
  const std::filesystem::path kill_counter_ = usage::own_kill_counter();
  std::optional<usage::MemoryKills> kills_;           ///< The last reading of the counter.
  std::chrono::steady_clock::time_point kills_read_;  ///< The time of that reading.
  std::map<const Attempt*, pid_t> running_;           ///< The first process of each attempt.
};

}  // namespace pipeline::orchestrators::local

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_local_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options);

}  // namespace pipeline::orchestrators
