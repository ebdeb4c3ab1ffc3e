/// @file
/// Where the images of a cluster's steps come from.
#pragma once

#include <memory>

#include "orchestrators/factory.hpp"
#include "orchestrators/image_lock.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

class PodImages {
 public:
  // As the port has them.
  virtual async::Task<Environment> environment(const StepSpec& step) = 0;
  virtual async::Task<bool> unchanged(std::string recheck) = 0;
  virtual async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                           core::CancelSource& cancel) = 0;
  virtual async::Task<std::string> packages(const StepSpec& step) = 0;
  /// Of a step that has been prepared.
  virtual async::Task<PodImage> image_of(const StepSpec& step) = 0;
  virtual ~PodImages() = default;
};

/// Made on this machine's engine, which the cluster's nodes share, or pushed to where they fetch
/// them from.
std::unique_ptr<PodImages> built_images(asio::io_context& loop, const OrchestratorOptions& options);
/// Made before by another process. Refers to the lock.
std::unique_ptr<PodImages> locked_images(const ImageLock& lock);

/// The step's repository, if it is one of a registry; else empty: the nodes have what this
/// machine's engine has, and see its files.
std::string registry_repository(const StepSpec& step);

}  // namespace pipeline::orchestrators
