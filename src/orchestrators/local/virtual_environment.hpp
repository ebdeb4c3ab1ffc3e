/// @file
/// Virtual environments: one folder each, named by the digest of everything that determines it,
/// shared by equal steps, runs and `pipe` processes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "archive/tar_stream.hpp"
#include "async/gate.hpp"
#include "core/cancel.hpp"
#include "orchestrators/local/process.hpp"
#include "orchestrators/local/process_reaper.hpp"
#include "orchestrators/local/programs.hpp"

namespace pipeline::orchestrators {

/// Everything that determines an environment.
struct EnvironmentPlan {
  std::string digest;  ///< Hex digest over all following members.
  Program python;
  std::vector<std::string>
      looked_up;        ///< Names on PATH that determine the choice of Python and installer.
  bool by_name = true;  ///< It is determined by names and versions of packages only, not by files.
  bool resolves = false;  ///< Versions are chosen when it is made: see docker::resolves().
  PackageInstaller installer;
  std::vector<std::string> requirements;       ///< Lines of a requirements file.
  std::vector<std::string> installer_options;  ///< `--index-url=...`.
  std::filesystem::path pyproject;             ///< Its dependencies are installed; empty: none.
  std::string project_command;                 ///< Run in a copy of `project`.
  std::vector<archive::ContextFile> project;
  StringMap variables;  ///< DockerSettings::environment.
  std::vector<std::string> notices;
  std::string summary() const;  ///< For messages: `scikit-learn==1.5.2 and 3 more`.
};

class VirtualEnvironments {
 public:
  /// @param root the pipeline's folder; relative requirements and the project are resolved against
  /// it
  VirtualEnvironments(asio::io_context& loop, ProcessReaper& reaper, std::filesystem::path root);
  ~VirtualEnvironments();

  static bool wanted(const DockerSettings& settings);
  /// No side effects. Throws EnvironmentError if there is no Python or a file is missing.
  EnvironmentPlan plan(const StepSpec& step, Programs& programs) const;
  std::filesystem::path folder(const std::string& digest) const {
    return cache_ / "environments" / digest;
  }
  bool ready(const std::string& digest) const;
  /// Returns a digest over the names and versions of what is installed in a ready environment.
  std::string packages(const std::string& digest) const;
  /// Creates the environment, or waits for the process or coroutine that is creating it. Throws
  /// BuildError with the last lines of the installer.
  async::Task<> make(const EnvironmentPlan& plan, const std::string& step, EventSink& events,
                     core::CancelSource& cancel);

 private:
  struct Build {
    explicit Build(const asio::any_io_executor& executor) : done(executor) {}
    async::Gate done;
    std::exception_ptr error;
  };
  async::Task<> make_locked(const EnvironmentPlan& plan, const std::string& step, EventSink& events,
                            core::CancelSource& cancel);

  asio::io_context& loop_;
  ProcessReaper& reaper_;
  std::filesystem::path root_, cache_;
  std::map<std::string, std::unique_ptr<Build>> builds_;
};

/// Returns `$PIPE_CACHE_DIR`, else `$XDG_CACHE_HOME/pipe`, else `~/.cache/pipe`.
std::filesystem::path cache_folder();

/// Returns all of the user's environment variables, for tools that work for the user, not for
/// steps.
StringMap caller_variables();

}  // namespace pipeline::orchestrators
