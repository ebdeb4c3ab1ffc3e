/// @file
/// Images for steps: what an image is made of (plan), whether the engine has it, and making it.
#pragma once

#include <memory>
#include <string>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "docker/engine_api.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

struct ImageStatus {
  std::string
      digest;  ///< Over the plan and the parent's id, hex; empty while the parent is not there.
  std::string reference;  ///< `pipe:env-<digest>`, or the parent's reference.
  std::string image_id;   ///< `sha256:...`, if the engine has it.
  std::string reason;     ///< If it has not: what will be done and why.
  bool resolves = false;  ///< ImagePlan::resolves
};

/// One per run. Equal environments are looked up and built once, different ones side by side.
class ImageBuilder {
 public:
  ImageBuilder(asio::io_context& loop, EngineApi& engine, BuilderOptions options);
  ~ImageBuilder();
  /// Without side effect.
  async::Task<ImageStatus> status(const StepSpec& step);
  /// Pulls and builds what is missing. Throws BuildError (failing line, last output, what to try),
  /// EnvironmentError.
  async::Task<ImageStatus> ensure(const StepSpec& step, EventSink& events,
                                  core::CancelSource& cancel);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::docker
