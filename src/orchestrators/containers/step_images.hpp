/// @file
/// Builds the images of steps on an engine, for containers and for a cluster's pods.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "docker/image_builder.hpp"
#include "docker/program_image.hpp"
#include "docker/published_images.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::containers {

/// The image that an attempt runs in.
struct StepImage {
  std::string id;          ///< `sha256:...`.
  std::string reference;   ///< `pipe:env-<digest>`, or the parent's reference; for published images
                           ///< `HOST/NAME@sha256:...`, if known.
  bool only_here = false;  ///< Built on the engine, and not pushed to a registry.
  /// For a step with StepSpec::program: the command that starts the program there.
  std::vector<std::string> program;
};

/// Returns true if the settings, the lock file and other images alone determine a step's image;
/// false if files of the pipeline's folder or this machine's Python also do, or if each run builds
/// the image.
bool images_decide(const DockerSettings& settings);

class StepImages {
 public:
  /// @param published for an orchestrator that does not share the engine: built images whose name
  /// has a registry are pushed there, and images with a registry digest are referred to by it.
  /// If it is null, images stay on the engine.
  StepImages(asio::io_context& loop, docker::EngineApi& engine, const OrchestratorOptions& options,
             docker::PublishedImages* published = nullptr);

  // See EnvironmentProvider.
  async::Task<Environment> environment(const StepSpec& step);
  async::Task<bool> matches(std::string fingerprint);
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel);
  async::Task<std::string> packages(const StepSpec& step);

  /// Returns the image of a prepared step; throws EnvironmentError if it no longer exists.
  async::Task<StepImage> image_of(const StepSpec& step);
  /// Returns the images of a prepared step's services, by name: identifiers, or references where
  /// the engine is not shared.
  async::Task<StringMap> images_of_services(const StepSpec& step);
  docker::ImageBuilder& builder() { return builder_; }

 private:
  bool is_to_be_published(const StepSpec& step, const docker::ImageStatus& status) const;
  async::Task<> publish(const StepSpec& step, docker::ImageStatus status, EventSink& events,
                        core::CancelSource& cancel);
  async::Task<Environment> environment_of(const StepSpec& step, docker::ImageStatus status);
  async::Task<std::string> fingerprint_of(std::string parent, docker::ImageStatus status);
  async::Task<std::vector<std::string>> program_words(const StepSpec& step, std::string image_id);

  docker::EngineApi& engine_;
  docker::ImageBuilder builder_;
  docker::ProgramImages programs_;
  docker::PublishedImages* published_;
  StringMap parent_ids_;  ///< Identifiers of parent images, keyed by reference.
  const std::string run_;
  const std::filesystem::path state_;
  async::SingleFlight<std::string> packages_;                        ///< Keyed by image id.
  std::map<std::string, std::vector<std::string>> image_variables_;  ///< Keyed by image id.
};

}  // namespace pipeline::orchestrators::containers
