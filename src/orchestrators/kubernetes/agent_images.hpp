/// @file
/// The agent, which starts a step's command in its pod, as an image: for nodes that do not see this
/// machine's files.
#pragma once

#include <string>

#include "async/single_flight.hpp"
#include "docker/published_images.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Makes the agent's images. There is one object for each run.
class AgentImages {
 public:
  /// @param run_id label of built images
  /// @param has_stager the image also contains the stager and this machine's CAs
  AgentImages(asio::io_context& loop, docker::EngineApi& engine, docker::PublishedImages& published,
              std::string run_id, bool has_stager)
      : engine_(engine),
        published_(published),
        run_id_(std::move(run_id)),
        has_stager_(has_stager),
        ready_(loop) {}

  /// Returns the image's reference, by digest in a repository with a registry; builds and pushes
  /// the image if it is missing. The image contains only the programs: some 1 MB, with the stager
  /// some 6 MB.
  /// @param architecture of the nodes: `amd64`
  async::Task<std::string> ensure(std::string repository, std::string architecture,
                                  std::string step, EventSink& events, core::CancelSource& cancel);
  /// Returns the earlier result of ensure(); null if there is none.
  const std::string* find(const std::string& repository, const std::string& architecture) const {
    return ready_.find(key_of(repository, architecture));
  }

 private:
  static std::string key_of(const std::string& repository, const std::string& architecture) {
    return repository + " " + architecture;
  }
  async::Task<std::string> make(std::string repository, std::string architecture, std::string step,
                                EventSink& events, core::CancelSource& cancel);

  docker::EngineApi& engine_;
  docker::PublishedImages& published_;
  std::string run_id_;
  bool has_stager_;
  async::SingleFlight<std::string> ready_;  ///< Keyed by key_of().
};

}  // namespace pipeline::orchestrators::kubernetes
