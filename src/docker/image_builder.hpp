/// @file
/// Images for steps: plans an image, checks whether the engine has it, and builds it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "docker/engine_api.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

struct ImageStatus {
  std::string digest;     ///< Digest over the plan and the parent's id, hex; empty while the engine
                          ///< does not have the parent.
  std::string reference;  ///< `pipe:env-<digest>`, or the parent's reference.
  std::string image_id;   ///< `sha256:...`, if the engine has the image.
  std::string reason;     ///< If the engine does not have it: what will be done, and why.
  bool resolves = false;  ///< See ImagePlan::resolves.
  std::vector<std::string> requirements = {};  ///< As asked for, if a lock file chooses versions.
  std::vector<std::string> parents = {};  ///< Identities of the images that a build starts from.
};

/// One object for each run. Equal environments are looked up and built once, different ones
/// concurrently.
class ImageBuilder {
 public:
  ImageBuilder(asio::io_context& loop, EngineApi& engine, BuilderOptions options);
  ~ImageBuilder();
  /// Returns the image's status without side effects.
  async::Task<ImageStatus> status(const StepSpec& step);
  /// Pulls and builds what is missing. Throws BuildError (failing line, last output, advice) or
  /// EnvironmentError.
  async::Task<ImageStatus> ensure(const StepSpec& step, EventSink& events,
                                  core::CancelSource& cancel);

  /// Resolves the step's requirements if the lock file does not have them. Pulls and builds only
  /// what they are resolved against. Throws as ensure() does.
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::docker
