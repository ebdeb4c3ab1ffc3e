/// @file
/// Pushes an engine's images to their registries, for machines that do not share the engine, and
/// identifies them by digest.
#pragma once

#include <set>
#include <string>

#include <pipeline/events.hpp>

#include "async/single_flight.hpp"
#include "docker/credentials.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// An image of the engine whose name includes a registry.
struct LocalImage {
  std::string reference;  ///< `HOST/NAME:TAG`.
  std::string id;         ///< `sha256:...`.
};

/// Pushes the images of a run; one object for each run. Different images are pushed concurrently,
/// each once.
class PublishedImages {
 public:
  PublishedImages(asio::io_context& loop, EngineApi& engine) : engine_(engine), published_(loop) {}

  /// Pushes what the registry lacks and returns `HOST/NAME@sha256:...`. An image that was pushed
  /// before and still exists there costs one request. Throws EnvironmentError with advice.
  async::Task<std::string> publish(LocalImage image, std::string step, EventSink& events,
                                   core::CancelSource& cancel);
  /// Returns the earlier result of publish(); null if there is none.
  const std::string* find(const LocalImage& image) const { return published_.find(key_of(image)); }
  /// Publishes the image, and gives it another tag in the same repository.
  async::Task<> add_tag(LocalImage image, std::string tag, std::string step, EventSink& events,
                        core::CancelSource& cancel);

 private:
  static std::string key_of(const LocalImage& image) { return image.reference + " " + image.id; }
  async::Task<std::string> push_if_missing(LocalImage image, std::string step, EventSink& events,
                                           core::CancelSource& cancel);
  async::Task<std::string> push(std::string reference, RegistryAuth auth, EventSink& events,
                                core::CancelSource& cancel);
  async::Task<RegistryAuth> credentials(std::string registry, EventSink& events);
  async::Task<std::string> digest_in_registry(std::string reference, RegistryAuth auth,
                                              core::CancelSource& cancel);

  EngineApi& engine_;
  async::SingleFlight<std::string> published_;  ///< Keyed by key_of().
  std::set<std::string> reported_;              ///< Notices, each shown once.
};

}  // namespace pipeline::docker
