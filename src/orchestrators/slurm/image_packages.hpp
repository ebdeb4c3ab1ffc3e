/// @file
/// Python packages of steps on parent images that were pulled without an engine. The scripts of an
/// engine's build resolve and install them, in a container of the profile's runtime on this
/// machine, so that the lock file and the step's key are the same as with an engine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "docker/image_plan.hpp"
#include "docker/package_lock.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/processes/process_reaper.hpp"
#include "orchestrators/slurm/unpacked_image.hpp"

namespace pipeline::orchestrators::slurm {

/// The image of a step, on top of a parent image.
struct PackagePlan {
  docker::ImagePlan plan;
  std::string digest;                     ///< See docker::ImageStatus::digest.
  std::string reference;                  ///< See docker::ImageStatus::reference.
  std::string unknown;                    ///< Why the packages are not known yet; empty: known.
  std::vector<std::string> requirements;  ///< See docker::locked_lines(); may be empty.
  bool adds_files() const { return !plan.python.empty(); }
  bool is_known() const { return unknown.empty(); }
};

class ImagePackages {
 public:
  ImagePackages(asio::io_context& loop, processes::ProcessReaper& reaper,
                const OrchestratorOptions& options, std::string runtime);

  /// Returns true if the step asks for Python packages.
  bool has_requirements(const StepSpec& step) const;

  /// Returns the image of the step on its parent image. Throws EnvironmentError for requirements
  /// that cannot be locked.
  /// @param plan   the image's plan, see PulledImages::plan()
  /// @param parent the parent image, see oci::describe()
  PackagePlan plan(const StepSpec& step, docker::ImagePlan plan,
                   const nlohmann::json& parent) const;

  /// Resolves the requirements of a plan, and writes the lock file. Throws BuildError.
  /// @param file the parent's SquashFS file
  async::Task<> resolve(const StepSpec& step, PackagePlan plan, nlohmann::json parent,
                        std::filesystem::path file, EventSink& events, core::CancelSource& cancel);

  /// Makes `folder`/root with the files of the parent and of the plan's packages. Throws BuildError
  /// with the last lines of the installer.
  /// @param folder is empty
  /// @param file   the parent's SquashFS file
  async::Task<> install(const PackagePlan& plan, StringMap variables, std::filesystem::path file,
                        std::filesystem::path folder, std::function<void(std::string)> on_line,
                        core::CancelSource& cancel);
  /// See lockfile::LockFile::keep_all_environments().
  void keep_all_environments() {
    if (options_.lock) options_.lock->keep_all_environments();
  }

 private:
  struct Work;
  async::Task<bool> run(Work& work, core::CancelSource& cancel);
  async::Task<lockfile::LockedEnvironment> resolve_in_container(
      docker::Resolution resolution, std::function<void(const std::string&)> on_line,
      core::CancelSource& cancel);

  processes::ProcessReaper& reaper_;
  const docker::BuilderOptions options_;
  const std::string runtime_;
  docker::PackageLock lock_;
};

}  // namespace pipeline::orchestrators::slurm
