/// @file
/// Splits image references: `[REGISTRY/]NAME[:TAG][@DIGEST]` (github.com/distribution/reference).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::docker {

/// Returns `registry.example:5000` for `registry.example:5000/team/x:tag`; `docker.io` for
/// `ubuntu`.
std::string registry_of(std::string_view reference);
/// Returns true if the reference contains a registry, even `docker.io`. Otherwise it stands for a
/// local image of the engine, or for an image on Docker Hub.
bool names_registry(std::string_view reference);

/// Returns the name, and the tag or digest; without either, the tag `latest`.
std::pair<std::string, std::string> split_reference(std::string_view reference);

/// Returns the name in the reference with the image's digest, `NAME@sha256:...`, if the engine has
/// pulled or pushed the image by that name; otherwise an empty text.
/// @param image the engine's description of the image
std::string pinned_reference(const nlohmann::json& image, std::string_view reference);

}  // namespace pipeline::docker
