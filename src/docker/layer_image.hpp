/// @file
/// Images that are one layer of files on top of another image, found again by the digest of what is
/// in them.
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
      kind;  ///< What its files are, for people and the label pipe.image: `program`, `agent`.
  std::string digest;     ///< Over all that is in it, hex.
  std::string reference;  ///< Its name, made of the digest.
  std::string from;       ///< The image below; `scratch` for none.
  std::string platform;   ///< Or empty.
  std::string run_id;
  std::function<std::vector<ContextFile>()>
      files;  ///< Of the layer, folders before what is in them; asked for when it is built.
};

/// The id of what the engine has under this name with this digest; empty if it has not.
async::Task<std::string> layer_image_id(EngineApi& engine, std::string reference,
                                        std::string digest);

/// Builds it, and tells so; its id. Throws BuildError, EnvironmentError.
async::Task<std::string> build_layer_image(EngineApi& engine, LayerImage image, std::string step,
                                           std::string reason, EventSink& events,
                                           core::CancelSource& cancel);

}  // namespace pipeline::docker
