/// @file
/// Virtual environments: one folder each, named by the digest of everything that determines it,
/// shared by equal steps, runs and `pipe` processes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/single_flight.hpp"
#include "core/cancel.hpp"
#include "docker/image_plan.hpp"
#include "file_tree/tar_stream.hpp"
#include "lockfile/lock_file.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/process_reaper.hpp"
#include "orchestrators/processes/programs.hpp"
#include "orchestrators/processes/python_facts.hpp"

namespace pipeline::orchestrators::processes {

/// Everything that determines an environment.
struct EnvironmentPlan {
  std::string digest;  ///< Hex digest over what is installed; empty while that is not resolved.
  FoundProgram python;
  /// Names on PATH that determine the choice of Python and installer.
  std::vector<std::string> looked_up;
  bool by_name = true;    ///< Names and versions of packages determine the environment, not files.
  bool resolves = false;  ///< Versions are chosen when it is made: see python_packages::resolves().
  python_packages::PythonRequirements asked;
  /// The request to the lock file; unset: the packages are not locked.
  std::optional<lockfile::LockRequest> request;
  docker::Locked locked;        ///< The lock file's answer; null: the request has to be resolved.
  bool is_fresh = false;        ///< `locked` was resolved just now, so the index can be reached.
  std::string project_command;  ///< Run in a copy of `project`.
  std::vector<file_tree::ContextFile> project;
  std::vector<std::string> notices;
  /// Returns true if the packages are known, and so the digest.
  bool is_resolved() const { return !request || locked; }
  std::string summary() const;  ///< For messages: `scikit-learn==1.7.2 and 3 more`.
};

class VirtualEnvironments {
 public:
  /// @param options its `root` is the folder to which relative requirements and the project of
  /// a step without StepSpec::code_root refer; its `state` folder is not a part of a project
  VirtualEnvironments(asio::io_context& loop, ProcessReaper& reaper,
                      const OrchestratorOptions& options);
  ~VirtualEnvironments();

  /// Returns true if the settings ask for Python packages.
  static bool wanted(const DockerSettings& settings);
  /// Returns the plan for the step's environment, without side effects. Throws EnvironmentError if
  /// there is no Python or a file is missing, and InputError as LockFile::find() does.
  EnvironmentPlan plan(const StepSpec& step, Programs& programs);
  /// Looks the packages of an unresolved plan up in the lock file again.
  void look_up(EnvironmentPlan& plan) const;
  /// Resolves the plan's requirements and writes the lock file. Equal requirements are resolved
  /// once. If they cannot be locked, removes the plan's request instead.
  async::Task<> resolve(EnvironmentPlan& plan, const std::string& step, EventSink& events,
                        core::CancelSource& cancel);
  /// Returns the environment's folder, which may not exist.
  std::filesystem::path folder(const std::string& digest) const {
    return cache_ / "environments" / digest;
  }
  /// Returns true if the environment exists and is complete; false for an empty digest.
  bool ready(const std::string& digest) const;
  /// Describes an environment that is not ready, compared with this machine's most similar one.
  std::string reason_to_make(const EnvironmentPlan& plan) const;
  /// Returns a digest over the names and versions of what is installed in a ready environment.
  std::string packages(const std::string& digest) const;
  /// Creates the environment, or waits for the process or coroutine that is creating it. Throws
  /// BuildError with the last lines of the installer.
  async::Task<> make(const EnvironmentPlan& plan, const std::string& step, EventSink& events,
                     core::CancelSource& cancel);

 private:
  async::Task<> make_locked(const EnvironmentPlan& plan, const std::string& step, EventSink& events,
                            core::CancelSource& cancel);

  void add_request(EnvironmentPlan& plan);
  async::Task<lockfile::LockedEnvironment> resolve_in_process(
      const EnvironmentPlan& plan, lockfile::LockedEnvironment preferred, bool refresh,
      std::function<void(const std::string&)> on_line, core::CancelSource& cancel);

  ProcessReaper& reaper_;
  std::filesystem::path root_, state_, cache_, template_dir_;
  lockfile::LockFile* lock_;
  std::map<std::string, PythonFacts> facts_;      ///< Keyed by FoundProgram::identity.
  async::SingleFlight<std::string> resolutions_;  ///< Why a request cannot be locked, or empty.
  async::SingleFlight<bool> made_;                ///< Keyed by digest.
};

/// Returns all environment variables of the user, for installers; steps get only some of them.
StringMap caller_variables();

}  // namespace pipeline::orchestrators::processes
