/// @file
/// The images of steps as SquashFS files in the user's cache folder, which the nodes share. An
/// engine builds the images as for containers; if no engine answers, parent images are pulled from
/// a registry, and packages are added without root. An image has the same identity both ways.
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
#include "docker/build_report.hpp"
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
  StringMap variables;  ///< Set by the image or by `docker.environment`.
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
  /// An image, as it is needed to make its SquashFS file, or to run a step in that file.
  struct ImageFacts {
    std::filesystem::path file;
    StringMap variables;
    std::int64_t created = 0;  ///< Seconds since 1970.
  };
  /// The image of a step where no engine answers.
  struct PulledStepImage {
    PulledImage parent;
    PackagePlan packages;
    std::filesystem::path file;  ///< The SquashFS file: the parent's, or one with packages added.
  };
  /// Writes the files of an image as the tar at this path, or into the folder `root` beside it.
  using FilesWriter = std::function<async::Task<>(const std::filesystem::path&)>;

  /// Returns true if an engine answers; asks it once.
  async::Task<bool> has_engine();
  /// Returns the step's image where no engine answers; nothing if its parent image has to be pulled
  /// first.
  std::optional<PulledStepImage> find_pulled_image(const StepSpec& step) const;
  async::Task<Environment> pulled_environment(const StepSpec& step);
  /// Pulls the step's parent image, unless its file is there.
  async::Task<PulledStepImage> pull_parent(const StepSpec& step, EventSink& events,
                                           core::CancelSource& cancel);
  async::Task<PulledStepImage> resolve(const StepSpec& step, PulledStepImage image,
                                       EventSink& events, core::CancelSource& cancel);
  async::Task<> install(const StepSpec& step, const PulledStepImage& image, EventSink& events,
                        core::CancelSource& cancel);
  async::Task<Environment> prepare_pulled(const StepSpec& step, EventSink& events,
                                          core::CancelSource& cancel);
  /// Sets the environment's `ready` to false, with the reason, if the file has to be made.
  async::Task<> require_file(Environment& environment, std::filesystem::path file);
  /// Returns the facts about an image of the engine.
  async::Task<ImageFacts> look_up(std::string image);
  /// Makes the image's SquashFS file unless it exists, and returns the file's path.
  async::Task<std::string> make(ImageFacts image, docker::BuildReport report,
                                const FilesWriter& write, EventSink& events,
                                core::CancelSource& cancel);
  async::Task<> make_locked(const ImageFacts& image, const FilesWriter& write,
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
  async::SingleFlight<std::string> made_;    ///< Keyed by file.
  std::map<std::string, ImageFacts> known_;  ///< Images of the engine, keyed by identifier.
  asio::thread_pool pool_{1};                ///< Computes digests.
};

}  // namespace pipeline::orchestrators::slurm
