/// @file
/// Virtual environments: a folder each, named by the digest of what determines it, shared by equal
/// steps, runs and `pipe` processes.
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

/// What an environment is made of.
struct EnvironmentPlan {
  std::string digest;  ///< Over all below, hex.
  Program python;
  std::vector<std::string>
      looked_up;          ///< Names on PATH that the choice of Python and installer hangs on.
  bool by_name = true;    ///< Nothing but names and versions of packages went into it, no files.
  bool resolves = false;  ///< Versions are chosen when it is made: see docker::resolves().
  PackageInstaller installer;
  std::vector<std::string> requirements;       ///< Lines of a requirements file.
  std::vector<std::string> installer_options;  ///< `--index-url=...`
  std::filesystem::path pyproject;  ///< Whose dependencies the installer reads; empty: none.
  std::string project_command;      ///< Run in a copy of `project`.
  std::vector<archive::ContextFile> project;
  StringMap variables;  ///< DockerSettings::environment.
  std::vector<std::string> notices;
  std::string summary() const;  ///< For people: `scikit-learn==1.5.2 and 3 more`.
};

class VirtualEnvironments {
 public:
  /// @param root the pipeline's folder: relative requirements and the project are taken from there
  VirtualEnvironments(asio::io_context& loop, ProcessReaper& reaper, std::filesystem::path root);
  ~VirtualEnvironments();

  static bool wanted(const DockerSettings& settings);
  /// Without side effect. Throws EnvironmentError when there is no Python, or a file is missing.
  EnvironmentPlan plan(const StepSpec& step, Programs& programs) const;
  std::filesystem::path folder(const std::string& digest) const {
    return cache_ / "environments" / digest;
  }
  bool ready(const std::string& digest) const;
  /// Digest over the names and versions of what is installed in one that is ready.
  std::string packages(const std::string& digest) const;
  /// Makes it, or waits for whoever makes it now, in this process or another. Throws BuildError
  /// with the last lines of the installer.
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

/// `$PIPE_CACHE_DIR`, else `$XDG_CACHE_HOME/pipe`, else `~/.cache/pipe`.
std::filesystem::path cache_folder();

/// The caller's environment variables, all of them: for tools that work for the caller, not for
/// steps.
StringMap caller_variables();

}  // namespace pipeline::orchestrators
