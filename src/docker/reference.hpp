/// @file
/// The parts of an image's name: `[REGISTRY/]NAME[:TAG][@DIGEST]`
/// (github.com/distribution/reference).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::docker {

/// `registry.example:5000/team/image:tag` -> `registry.example:5000`; `ubuntu` -> `docker.io`.
std::string registry_of(std::string_view reference);
/// Whether it says which registry, be it `docker.io`: a name without one is an image of this
/// engine's, or Docker Hub's.
bool names_registry(std::string_view reference);

/// The name before the tag or digest, and those; the tag is `latest` where there is none.
std::pair<std::string, std::string> split_reference(std::string_view reference);

/// `NAME@sha256:...`, under which a registry has this image as far as the engine knows, which has
/// pulled or pushed it by this name; empty if it does not.
/// @param image as the engine describes it
std::string by_digest(const nlohmann::json& image, std::string_view reference);

}  // namespace pipeline::docker
