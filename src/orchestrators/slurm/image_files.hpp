/// @file
/// The images of steps as SquashFS files in the user's cache folder, which the nodes share. An
/// engine builds the images as for containers; if no engine answers, they are pulled from
/// a registry, and packages are added without root. Both ways give the same identity.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "core/diagnostic.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/containers/step_images.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process_reaper.hpp"
#include "orchestrators/slurm/image_packages.hpp"
#include "orchestrators/slurm/pulled_images.hpp"
#include "orchestrators/slurm/squashfs_files.hpp"

namespace pipeline::orchestrators::slurm {

/// An image that nodes can mount.
struct ImageFile {
  std::filesystem::path path;
  StringMap variables;  ///< The image's own.
};

/// Returns true if the step's settings name an image.
bool names_image(const StepSpec& step);

class ImageFiles : public EnvironmentProvider {
 public:
  /// @param reaper  starts the processes that make files; outlives this object
  /// @param runtime the profile's `container_runtime`
  ImageFiles(asio::io_context& loop, processes::ProcessReaper& reaper,
             const OrchestratorOptions& options, const std::string& runtime);

  async::Task<Environment> environment(const StepSpec& step) override;
  async::Task<std::string> packages(const StepSpec& step) override;
  async::Task<bool> matches(std::string fingerprint) override;
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override;
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override;

  /// Adds diagnostics if the step cannot run in an image here.
  async::Task<> check(const StepSpec& step, std::vector<core::Diagnostic>& found);

  /// Returns the file of a prepared step; throws EnvironmentError if it no longer exists.
  async::Task<ImageFile> file_of(const StepSpec& step);

 private:
  /// The facts about an image that are looked up once.
  struct Known {
    std::filesystem::path file;
    StringMap variables;
    std::int64_t created = 0;
  };
  /// The image of a step, without an engine.
  struct Unbuilt {
    PulledImage parent;
    PackagePlan packages;
    std::filesystem::path file;  ///< The SquashFS file: the parent's, or one with packages added.
  };
  /// Writes the files of an image as the tar at this path, or into the folder `root` beside it.
  using FilesWriter = std::function<async::Task<>(const std::filesystem::path&)>;

  /// Returns true if an engine answers; asks it once.
  async::Task<bool> has_engine();
  /// Returns nothing if the step's parent image has to be pulled first.
  std::optional<Unbuilt> find_unbuilt(const StepSpec& step) const;
  async::Task<Environment> pulled_environment(const StepSpec& step);
  /// Pulls the step's parent image, unless its file is there.
  async::Task<Unbuilt> pull_parent(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel);
  async::Task<Unbuilt> resolve(const StepSpec& step, Unbuilt image, EventSink& events,
                               core::CancelSource& cancel);
  async::Task<> install(const StepSpec& step, const Unbuilt& image, EventSink& events,
                        core::CancelSource& cancel);
  async::Task<Environment> prepare_pulled(const StepSpec& step, EventSink& events,
                                          core::CancelSource& cancel);
  async::Task<> look_for_file(Environment& environment, std::filesystem::path file);
  /// Returns the facts about an image of the engine.
  async::Task<Known> look_up(std::string image);
  async::Task<std::string> make(Known known, std::string step, std::string reason,
                                const FilesWriter& write, EventSink& events,
                                core::CancelSource& cancel);
  async::Task<> make_locked(const Known& known, const FilesWriter& write,
                            core::CancelSource& cancel);
  async::Task<bool> can_be_used(std::filesystem::path file);

  docker::EngineApi engine_;
  containers::StepImages images_;
  PulledImages pulled_;             ///< Used if no engine answers.
  ImagePackages packages_;          ///< Used if no engine answers.
  std::optional<bool> has_engine_;  ///< Set by has_engine().
  std::set<std::string> reported_;  ///< Notices, each shown once.
  processes::ProcessReaper& reaper_;
  const std::string run_;
  const std::filesystem::path state_;
  async::SingleFlight<std::string> made_;  ///< Keyed by file.
  std::map<std::string, Known> known_;     ///< Keyed by image.
  asio::thread_pool pool_{1};              ///< Computes digests.
};

}  // namespace pipeline::orchestrators::slurm
