/// @file
/// The environments of steps that are processes: the programs of a machine and the virtual
/// environments that are made there. Nodes of a cluster that share the machine's files have the
/// same environments.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process_reaper.hpp"
#include "orchestrators/processes/programs.hpp"
#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::processes {

/// The environment that steps with the same programs and settings share.
struct HostContext {
  Environment environment;
  std::optional<EnvironmentPlan> plan;          ///< Set if the step has a virtual environment.
  std::vector<std::filesystem::path> programs;  ///< Programs that the command names by their paths.
  std::string identity;                         ///< Digest over the programs and variables.
  std::vector<std::string> notices;             ///< Notices about the settings.
  nlohmann::json fingerprint;                   ///< See matches().
};

class HostEnvironments : public EnvironmentProvider {
 public:
  /// Returns a folder for PATH in which `python` is the program `python3`.
  using PythonFolder = std::function<std::filesystem::path(const std::filesystem::path& python3)>;

  /// @param capabilities those of the orchestrator; they outlive this object
  HostEnvironments(asio::io_context& loop, ProcessReaper& reaper,
                   const OrchestratorOptions& options, const Capabilities& capabilities,
                   PythonFolder python_folder);

  async::Task<Environment> environment(const StepSpec& step) override;
  async::Task<std::string> packages(const StepSpec& step) override;
  async::Task<bool> matches(std::string fingerprint) override;
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override;
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override;

  /// Returns the environment that the step shares with equal ones; finds the programs on the first
  /// call. Throws as VirtualEnvironments::plan() does.
  HostContext& host(const StepSpec& step);
  /// Throws EnvironmentError if the virtual environment has been removed since prepare().
  void require_ready(const HostContext& host) const;
  /// Returns the variables of the attempt's process, except those of its GPUs; PATH begins with the
  /// virtual environment.
  /// @param temporary the value of TMPDIR
  StringMap variables(const AttemptSpec& attempt, const Layout& layout,
                      const std::filesystem::path& temporary, const HostContext& host);
  /// Returns the attempt's argument vector.
  std::vector<std::string> command(const AttemptSpec& attempt, Layout layout);

 private:
  void fill_in(HostContext& host, const StepSpec& step, const std::string& path,
               const std::vector<std::string>& names);
  void describe(HostContext& host) const;
  Programs& programs(const std::string& path);

  const Capabilities& capabilities_;
  PythonFolder python_folder_;
  std::filesystem::path root_;
  lockfile::LockFile* lock_;
  VirtualEnvironments environments_;
  std::map<std::string, Programs> programs_;            ///< Keyed by PATH.
  std::unordered_map<std::string, HostContext> known_;  ///< Keyed by host_key().
};

}  // namespace pipeline::orchestrators::processes
