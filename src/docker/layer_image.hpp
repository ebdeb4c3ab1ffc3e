/// @file
/// Images that add one layer of files to another image, and are identified by the files' digest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "core/error.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

struct LayerImage {
  std::string kind;       ///< `program` or `agent`; for messages and the label pipe.image.
  std::string digest;     ///< Digest over the whole content, hex.
  std::string reference;  ///< Name of the image, which contains the digest.
  std::string from;       ///< The base image; `scratch` for none.
  std::string platform;   ///< May be empty.
  std::string run_id;
  /// Returns the layer's files, folders before their content; called when the image is built.
  std::function<std::vector<ContextFile>()> files;
};

/// Returns the id of the engine's image with this name, digest and platform; empty if the engine
/// does not have it. An empty platform stands for the engine's own.
async::Task<std::string> layer_image_id(EngineApi& engine, std::string reference,
                                        std::string digest, std::string platform);

/// Returns the error for an image that the engine does not have although its build has succeeded.
core::BuildError vanished_image_error(const std::string& reference);
/// Builds the image, emits events and returns its id. Throws BuildError, EnvironmentError.
async::Task<std::string> build_layer_image(EngineApi& engine, LayerImage image, std::string step,
                                           std::string reason, EventSink& events,
                                           core::CancelSource& cancel);

}  // namespace pipeline::docker
