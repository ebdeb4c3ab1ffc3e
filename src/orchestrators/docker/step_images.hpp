/// @file
/// The images that steps run in, made on an engine: what containers and a cluster's pods have in common.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "docker/image_builder.hpp"
#include "docker/program_image.hpp"
#include "orchestrators/factory.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline {

/// What an attempt runs in.
struct StepImage {
  std::string id;                    ///< `sha256:...`
  std::string reference;             ///< `pipe:env-<digest>`, or the parent's.
  bool built = false;                ///< Here; else the reference is the parent's, which has a registry.
  std::vector<std::string> program;  ///< For a step with StepSpec::program: the words that start it there.
};

class StepImages {
 public:
  StepImages(asio::io_context& loop, docker::EngineApi& engine, const OrchestratorOptions& options);

  // As the port has them.
  Task<Environment> environment(const StepSpec& step);
  Task<bool> unchanged(std::string recheck);
  Task<Environment> prepare(const StepSpec& step, EventSink& events, CancelSource& cancel);

  /// Of a step that has been prepared; throws EnvironmentError if it is gone.
  Task<StepImage> image_of(const StepSpec& step);
  docker::ImageBuilder& builder() { return builder_; }

 private:
  Task<Environment> environment_of(const StepSpec& step, docker::ImageStatus status);
  Task<std::string> recheck_of(std::string parent, docker::ImageStatus status);
  Task<std::vector<std::string>> program_words(const StepSpec& step, std::string image_id);

  docker::EngineApi& engine_;
  docker::ImageBuilder builder_;
  docker::ProgramImages programs_;
  StringMap parent_ids_;
  std::map<std::string, std::vector<std::string>> image_variables_;  ///< By image id.
};

}  // namespace pipeline
