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

/// The image of a step, as far as it is known.
struct ImageStatus {
  /// Digest over the plan and the parent's identity, in hex; empty while the engine does not have
  /// the parent. For an image that is used unchanged, its identity.
  std::string digest;
  std::string reference;  ///< `pipe:env-` and the digest's beginning, or the parent's reference.
  std::string image_id;   ///< `sha256:...`; empty while the engine does not have the image.
  std::string reason;     ///< Without an image_id: what will be done, and why.
  bool resolves = false;  ///< See ImagePlan::resolves.
  /// The requirements as the user wrote them, if a lock file chooses their versions.
  std::vector<std::string> requirements = {};
  std::vector<std::string> parents = {};  ///< Identities of the images from which a build starts.
};

/// Looks up and builds the images of a run's steps; one object for each run. Equal environments are
/// built once, different ones concurrently.
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
  /// the image against which they are resolved. Throws as ensure() does.
  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::docker
