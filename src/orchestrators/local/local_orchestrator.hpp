/// @file
/// Steps as plain processes of this machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "orchestrators/factory.hpp"
#include "orchestrators/local/limits.hpp"
#include "orchestrators/local/process_reaper.hpp"
#include "orchestrators/local/programs.hpp"
#include "orchestrators/local/virtual_environment.hpp"

namespace pipeline::orchestrators {

class LocalOrchestrator : public Orchestrator {
 public:
  LocalOrchestrator(asio::io_context& loop, OrchestratorOptions options);
  const Capabilities& capabilities() const override { return capabilities_; }
  async::Task<Environment> environment(const StepSpec& step) override;
  async::Task<std::string> packages(const StepSpec& step) override;
  async::Task<bool> unchanged(std::string recheck) override;
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override;
  async::Task<AttemptResult> run(const Attempt& attempt) override;
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override;

 private:
  /// What a step runs in. Steps with the same programs and settings share one.
  struct HostContext {
    Environment environment;
    std::optional<EnvironmentPlan> plan;
  };
  HostContext& host(const StepSpec& step);
  Programs& programs(const std::string& path);
  async::Task<AttemptResult> run_in_place(const Attempt& attempt);
  /// The variables that the process gets; PATH leads to the virtual environment first.
  StringMap variables(const Attempt& attempt, const class Workspace& workspace,
                      const HostContext& in);

  ProcessReaper reaper_;
  OrchestratorOptions options_;
  ControlGroups groups_;
  Capabilities capabilities_;
  VirtualEnvironments environments_;
  std::optional<asio::thread_pool> pool_;  ///< For copies of much code; started when there is some.
  std::map<std::string, Programs> programs_;  ///< By PATH.
  std::unordered_map<std::string, HostContext> known_;
};

/// Those of the caller's variables that a step gets: what says who and where the user is, which
/// language and time zone they use, and how the network is reached. Everything else must be
/// declared, so that a step does not depend on what its cache key does not cover.
StringMap passed_on_variables();

/// What of the settings a process cannot honour, a sentence each.
std::vector<std::string> ignored_settings(const Settings& settings,
                                          const Capabilities& capabilities);

/// Why a program could not be started, and what to do about it.
Failure not_found(const std::string& name, const std::string& path,
                  const std::filesystem::path& code);

/// What the end of the process means for the attempt; nothing for success.
std::optional<Failure> failure_of(const ProcessEnd& end, bool out_of_memory, const StepSpec& step);

}  // namespace pipeline::orchestrators
