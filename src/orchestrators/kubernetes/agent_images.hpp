/// @file
/// The program that starts a step's command in its pod, as an image of its own: for nodes that do not see this machine's files.
#pragma once

#include <string>

#include "docker/published_images.hpp"
#include "docker/shared.hpp"

namespace pipeline {

/// One per run.
class AgentImages {
 public:
  /// @param run_id label of what is built
  /// @param carries the image has the carrier, too, and this machine's CAs
  AgentImages(asio::io_context& loop, docker::EngineApi& engine, docker::PublishedImages& published, std::string run_id, bool carries)
      : engine_(engine), published_(published), run_id_(std::move(run_id)), carries_(carries), ready_(loop) {}

  /// The image's reference, by digest in a repository with a registry; built and pushed if it is not there. Of nothing but the agent: some 1 MB, with the
  /// carrier some 6 MB.
  Task<std::string> ensure(std::string repository, std::string step, EventSink& events, CancelSource& cancel);
  /// What ensure() returned; nothing before.
  const std::string* find(const std::string& repository) const { return ready_.find(repository); }

 private:
  Task<std::string> make(std::string repository, std::string step, EventSink& events, CancelSource& cancel);

  docker::EngineApi& engine_;
  docker::PublishedImages& published_;
  std::string run_id_;
  bool carries_;
  docker::Shared<std::string> ready_;  ///< By repository.
};

}  // namespace pipeline
