/// @file
/// The identity of an image, which is the same on all engines.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::docker {

/// Returns a digest, in hex, over the image's layers and those parts of its configuration that the
/// OCI image specification defines. An image's Id cannot be used: it is the digest of the
/// configuration, the manifest or the index, depending on the engine's store, so that equal images
/// have different Ids.
/// @param image the response of GET /images/NAME/json
std::string image_identity(const nlohmann::json& image);

/// Returns the user that the image's containers run as; empty for root.
std::string user_of(const nlohmann::json& image);

/// Returns true if the image is made for the platform, or the platform is empty.
bool fits_platform(const nlohmann::json& image, const std::string& platform);

}  // namespace pipeline::docker
