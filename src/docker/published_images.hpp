/// @file
/// Images of an engine in their registries, for machines that do not share it: pushed where they
/// are missing, and known by their digest.
#pragma once

#include <set>
#include <string>

#include <pipeline/events.hpp>

#include "async/single_flight.hpp"
#include "docker/credentials.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// An image that the engine has, under a name that says which registry it belongs to.
struct LocalImage {
  std::string reference;  ///< `HOST/NAME:TAG`
  std::string id;         ///< `sha256:...`
};

/// One per run. Different images are pushed side by side, each once.
class PublishedImages {
 public:
  PublishedImages(asio::io_context& loop, EngineApi& engine) : engine_(engine), published_(loop) {}

  /// `HOST/NAME@sha256:...`: from now on its registry has it. Pushed is what the registry lacks; an
  /// image that it was given before, and still has, costs one question. Throws EnvironmentError
  /// that says what to do.
  async::Task<std::string> publish(LocalImage image, std::string step, EventSink& events,
                                   core::CancelSource& cancel);
  /// What publish() returned for it; nothing before.
  const std::string* find(const LocalImage& image) const { return published_.find(key_of(image)); }
  /// Likewise, a further name in the same repository.
  async::Task<> name(LocalImage image, std::string tag, std::string step, EventSink& events,
                     core::CancelSource& cancel);

 private:
  static std::string key_of(const LocalImage& image) { return image.reference + " " + image.id; }
  async::Task<std::string> make(LocalImage image, std::string step, EventSink& events,
                                core::CancelSource& cancel);
  async::Task<std::string> push(std::string reference, std::string why, RegistryAuth auth,
                                std::string step, EventSink& events, core::CancelSource& cancel);
  async::Task<RegistryAuth> credentials(std::string registry, EventSink& events);
  async::Task<std::string> digest_there(std::string reference, RegistryAuth auth,
                                        core::CancelSource& cancel);

  EngineApi& engine_;
  async::SingleFlight<std::string> published_;  ///< By key_of().
  std::set<std::string> reported_;              ///< Notices, each shown once.
};

}  // namespace pipeline::docker
