/// @file
/// The sources of the images that a cluster's steps run in.
#pragma once

#include <memory>

#include "orchestrators/image_lock.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

class PodImages {
 public:
  // See Orchestrator.
  virtual async::Task<Environment> environment(const StepSpec& step) = 0;
  virtual async::Task<bool> matches(std::string fingerprint) = 0;
  virtual async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                           core::CancelSource& cancel) = 0;
  /// See Orchestrator::lock().
  virtual async::Task<> lock(const StepSpec& step, EventSink& events,
                             core::CancelSource& cancel) = 0;
  /// See Orchestrator::packages().
  virtual async::Task<std::string> packages(const StepSpec& step) = 0;
  /// Returns the image of a prepared step.
  virtual async::Task<PodImage> image_of(const StepSpec& step) = 0;
  virtual ~PodImages() = default;
};

/// Returns the images that this machine's engine builds. The cluster's nodes share the engine, or
/// pull the images from the registry to which they are pushed.
std::unique_ptr<PodImages> built_images(asio::io_context& loop, const OrchestratorOptions& options);
/// Returns images that another process has built and recorded; `lock` must outlive them.
std::unique_ptr<PodImages> locked_images(const ImageLock& lock);

/// Returns the step's repository if it is in a registry; if empty, the nodes have the images of
/// this machine's engine and see its files.
std::string registry_repository(const StepSpec& step);

}  // namespace pipeline::orchestrators::kubernetes
