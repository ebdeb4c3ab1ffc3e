/// @file
/// The images that steps run in, made on an engine: what containers and a cluster's pods have in
/// common.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "docker/image_builder.hpp"
#include "docker/program_image.hpp"
#include "docker/published_images.hpp"
#include "orchestrators/factory.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// What an attempt runs in.
struct StepImage {
  std::string id;          ///< `sha256:...`
  std::string reference;   ///< `pipe:env-<digest>`, or the parent's; of published images
                           ///< `HOST/NAME@sha256:...`, as far as it is known.
  bool only_here = false;  ///< Built on the engine, and in no registry.
  std::vector<std::string>
      program;  ///< For a step with StepSpec::program: the words that start it there.
};

class StepImages {
 public:
  /// @param published for a place that does not share the engine: what is built under a name with a
  /// registry is pushed there, and all that has a digest there runs by it. None: images stay where
  /// they are.
  StepImages(asio::io_context& loop, docker::EngineApi& engine, const OrchestratorOptions& options,
             docker::PublishedImages* published = nullptr);

  // As the port has them.
  async::Task<Environment> environment(const StepSpec& step);
  async::Task<bool> unchanged(std::string recheck);
  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel);

  async::Task<std::string> packages(const StepSpec& step);

  /// Of a step that has been prepared; throws EnvironmentError if it is gone.
  async::Task<StepImage> image_of(const StepSpec& step);
  docker::ImageBuilder& builder() { return builder_; }

 private:
  bool is_to_be_published(const StepSpec& step, const docker::ImageStatus& status) const;
  async::Task<> publish(const StepSpec& step, docker::ImageStatus status, EventSink& events,
                        core::CancelSource& cancel);
  async::Task<Environment> environment_of(const StepSpec& step, docker::ImageStatus status);
  async::Task<std::string> recheck_of(std::string parent, docker::ImageStatus status);
  async::Task<std::vector<std::string>> program_words(const StepSpec& step, std::string image_id);

  docker::EngineApi& engine_;
  docker::ImageBuilder builder_;
  docker::ProgramImages programs_;
  docker::PublishedImages* published_;
  StringMap parent_ids_;
  const std::string run_;
  const std::filesystem::path state_;
  async::SingleFlight<std::string> packages_;                        ///< By image id.
  std::map<std::string, std::vector<std::string>> image_variables_;  ///< By image id.
};

}  // namespace pipeline::orchestrators
