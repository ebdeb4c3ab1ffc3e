/// @file
/// The images of steps as SquashFS files in the user's cache folder, which nodes share: made on an
/// engine as for containers, so with the same identity, and from there without root.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/containers/step_images.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process_reaper.hpp"
#include "orchestrators/slurm/squashfs_files.hpp"

namespace pipeline::orchestrators::slurm {

/// An image that nodes can mount.
struct ImageFile {
  std::filesystem::path path;
  StringMap variables;               ///< The image's own.
  std::vector<std::string> program;  ///< See containers::StepImage::program.
  std::string image;                 ///< `sha256:...`.
};

/// Returns true if the step's settings name an image.
bool names_image(const StepSpec& step);

/// Returns the seconds since 1970 of a time such as `2026-11-27T21:23:01.7Z`; 0 for another text.
std::int64_t seconds_of(const std::string& time);

class ImageFiles : public EnvironmentProvider {
 public:
  /// @param reaper of the processes that it starts; outlives this object
  ImageFiles(asio::io_context& loop, processes::ProcessReaper& reaper,
             const OrchestratorOptions& options);

  async::Task<Environment> environment(const StepSpec& step) override;
  async::Task<std::string> packages(const StepSpec& step) override;
  async::Task<bool> matches(std::string fingerprint) override {
    return images_.matches(std::move(fingerprint));
  }
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override;
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override;

  /// Returns the file of a prepared step; throws EnvironmentError if it no longer exists.
  async::Task<ImageFile> file_of(const StepSpec& step);

 private:
  /// An image of the engine.
  struct Known {
    std::filesystem::path file;
    StringMap variables;
    std::int64_t created = 0;
  };
  async::Task<Known> look_up(std::string image);
  async::Task<std::string> make(std::string image, std::string step, std::string platform,
                                EventSink& events, core::CancelSource& cancel);
  async::Task<> make_locked(const Known& known, std::string image, std::string platform,
                            core::CancelSource& cancel);
  async::Task<> export_files(std::string image, std::string platform,
                             const std::filesystem::path& tar, core::CancelSource& cancel);
  async::Task<bool> can_be_used(std::filesystem::path file);

  docker::EngineApi engine_;
  containers::StepImages images_;
  processes::ProcessReaper& reaper_;
  const std::string run_;
  const std::filesystem::path state_;
  async::SingleFlight<std::string> made_;  ///< Keyed by image.
  std::map<std::string, Known> known_;     ///< Keyed by image.
  asio::thread_pool pool_{1};              ///< Computes digests.
};

}  // namespace pipeline::orchestrators::slurm
