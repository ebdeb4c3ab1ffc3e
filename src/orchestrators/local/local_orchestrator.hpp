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
  async::Task<AttemptResult> run_in_place(const Attempt& attempt);
  async::Task<> make_workspace(const Attempt& attempt,
                               std::optional<processes::Workspace>& workspace);
  /// The process of the step's command, which may have no program.
  processes::ProcessOptions process_of(const Attempt& attempt,
                                       const processes::Workspace& workspace,
                                       const processes::HostContext& in);
  /// Returns the group that holds the attempt's limits, if it has any that can be held. Shared,
  /// because the processes of a node have one.
  std::shared_ptr<LimitGroup> limits_of(const Attempt& attempt);
  usage::MemoryKills kills_so_far();
  /// Returns a folder for PATH in which `python` is this program.
  const std::filesystem::path& python_folder(const std::filesystem::path& python3);
  /// Returns the variables of the process; PATH begins with the virtual environment.
  StringMap variables(const Attempt& attempt, const processes::Workspace& workspace,
                      const processes::HostContext& in);

  processes::ProcessReaper reaper_;
  OrchestratorOptions options_;
  ControlGroups groups_;
  LimitGroups limits_;
  Capabilities capabilities_;
  processes::HostEnvironments environments_;
  std::optional<asio::thread_pool> pool_;     ///< For copies of large code; created when needed.
  std::optional<asio::thread_pool> sampler_;  ///< Reads the memory of the steps' processes.
  std::map<std::filesystem::path, processes::ShortFolder>
      pythons_;  ///< Keyed by the program that is `python`.
  processes::ShortFolders short_folders_;
  Sandboxes sandboxes_;
  /// The count of the own control group: kills of other groups' processes do not count as a step's.
  const std::filesystem::path kill_counter_ = usage::own_kill_counter();
  std::optional<usage::MemoryKills> kills_;
  std::chrono::steady_clock::time_point kills_read_;
  std::map<const Attempt*, pid_t> running_;  ///< The first process of each attempt.
};

}  // namespace pipeline::orchestrators::local

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_local_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options);

}  // namespace pipeline::orchestrators
