/// @file
/// The program that starts a step's command in its pod, as an image of its own: for nodes that do
/// not see this machine's files.
#pragma once

#include <string>

#include "async/single_flight.hpp"
#include "docker/published_images.hpp"

namespace pipeline::orchestrators {

/// One per run.
class AgentImages {
 public:
  /// @param run_id label of what is built
  /// @param carries the image has the stager, too, and this machine's CAs
  AgentImages(asio::io_context& loop, docker::EngineApi& engine, docker::PublishedImages& published,
              std::string run_id, bool carries)
      : engine_(engine),
        published_(published),
        run_id_(std::move(run_id)),
        carries_(carries),
        ready_(loop) {}

  /// The image's reference, by digest in a repository with a registry; built and pushed if it is
  /// not there. Of nothing but the agent: some 1 MB, with the stager some 6 MB.
  async::Task<std::string> ensure(std::string repository, std::string step, EventSink& events,
                                  core::CancelSource& cancel);
  /// What ensure() returned; nothing before.
  const std::string* find(const std::string& repository) const { return ready_.find(repository); }

 private:
  async::Task<std::string> make(std::string repository, std::string step, EventSink& events,
                                core::CancelSource& cancel);

  docker::EngineApi& engine_;
  docker::PublishedImages& published_;
  std::string run_id_;
  bool carries_;
  async::SingleFlight<std::string> ready_;  ///< By repository.
};

}  // namespace pipeline::orchestrators
