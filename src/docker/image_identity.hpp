/// @file
/// The identity of an image on whichever engine.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::docker {

/// Returns a digest, hex, over the image's layers and those parts of its configuration that the
/// OCI image specification defines. An image's Id is the digest of its configuration, its manifest
/// or its index, depending on the engine's store, so equal images have different ones.
/// @param image the response of GET /images/NAME/json
std::string image_identity(const nlohmann::json& image);

/// Returns the user that the image's containers run as; empty for root.
std::string user_of(const nlohmann::json& image);

/// Returns true if the image is made for the platform, or the platform is empty.
bool fits_platform(const nlohmann::json& image, const std::string& platform);

}  // namespace pipeline::docker
