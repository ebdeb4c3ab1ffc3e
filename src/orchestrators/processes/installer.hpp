/// @file
/// Installs packages into one virtual environment, with uv or pip.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/file.hpp"
#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::processes {

struct InstallerFolders {
  std::filesystem::path target;     ///< The environment, which must not exist; unused by resolve().
  std::filesystem::path cache;      ///< See cache_folder().
  std::filesystem::path root;       ///< The pipeline's folder; relative requirements begin there.
  std::filesystem::path templates;  ///< Overrides the embedded templates; empty: none.
};

class Installer {
 public:
  /// @param on_line receives the lines that the tools print, and their progress
  Installer(const EnvironmentPlan& plan, InstallerFolders folders, ProcessReaper& reaper,
            core::CancelSource& cancel, std::function<void(std::string)> on_line);
  /// Makes the environment. Throws BuildError with the last lines of the failed tool, or
  /// EnvironmentError when cancelled.
  async::Task<> install();
  /// Returns the packages that the plan's requirements resolve to, without installing any. Throws
  /// BuildError, docker::CannotResolve, or EnvironmentError when cancelled.
  /// @param preferred, refresh see docker::Resolution
  async::Task<lockfile::LockedEnvironment> resolve(lockfile::LockedEnvironment preferred,
                                                   bool refresh);

 private:
  /// Runs a tool in `folder`, or in `work_` if that is the pipeline's folder. Returns true for exit
  /// code 0.
  async::Task<bool> run(std::vector<std::string> command, const std::filesystem::path& folder);
  async::Task<ProcessEnd> run_reported(ProcessOptions options, OutputCallback output);
  /// Runs a tool as run() does. Throws BuildError with the message `what` if it fails.
  async::Task<> require(std::vector<std::string> command, const std::filesystem::path& folder,
                        const std::string& what);
  async::Task<std::filesystem::path> find_uv();
  async::Task<> make_with_uv(const std::filesystem::path& uv);
  async::Task<> install_with_uv(std::vector<std::string> install,
                                const std::filesystem::path& requirements);
  async::Task<> make_with_pip();
  async::Task<> install_with_pip(std::vector<std::string> install,
                                 const std::filesystem::path& requirements);
  async::Task<> install_kept_with_pip(std::vector<std::string> install,
                                      const std::filesystem::path& requirements);
  /// Returns the plan's Python, or where it has no pip, the one of a virtual environment below
  /// `folder`, because Debian's python3-venv installs pip only into virtual environments.
  async::Task<std::string> find_python_with_pip(const std::filesystem::path& folder);
  void choose_uv_cache();
  async::Task<> install_project();
  core::BuildError failure(const std::string& what) const;

  const EnvironmentPlan& plan_;
  const std::filesystem::path target_, cache_, root_, templates_;
  const core::TemporaryFolder work_;  ///< The tools' working folder, with the link `root_link`.
  ProcessReaper& reaper_;
  core::CancelSource& cancel_;
  std::function<void(std::string)> on_line_;
  StringMap variables_;
  std::deque<std::string> last_lines_;
  std::string last_command_;
};

}  // namespace pipeline::orchestrators::processes
