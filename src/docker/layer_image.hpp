/// @file
/// Images of one layer of files on top of another image, identified by their content's digest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "docker/engine_api.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

struct LayerImage {
  std::string
      kind;  ///< Kind of the files, for messages and the label pipe.image: `program`, `agent`.
  std::string digest;     ///< Digest over the whole content, hex.
  std::string reference;  ///< Its name, which contains the digest.
  std::string from;       ///< The base image; `scratch` for none.
  std::string platform;   ///< May be empty.
  std::string run_id;
  std::function<std::vector<ContextFile>()>
      files;  ///< Returns the layer's files, folders before their content; called when the image is
              ///< built.
};

/// Returns the id of the engine's image with this name, digest and platform (empty: its own); empty
/// if there is none.
async::Task<std::string> layer_image_id(EngineApi& engine, std::string reference,
                                        std::string digest, std::string platform);

/// Builds the image, emits events and returns its id. Throws BuildError, EnvironmentError.
async::Task<std::string> build_layer_image(EngineApi& engine, LayerImage image, std::string step,
                                           std::string reason, EventSink& events,
                                           core::CancelSource& cancel);

}  // namespace pipeline::docker
