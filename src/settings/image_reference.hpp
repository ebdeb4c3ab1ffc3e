/// @file
/// Parses an image reference, `[HOST/]NAME[:TAG][@DIGEST]`, by the rules of
/// github.com/distribution/reference. All rooms use this parser.
#pragma once

#include <string_view>

namespace pipeline::settings {

/// Returns the registry that the reference begins with, in its original spelling (`ghcr.io`,
/// `host:5000`, `[::1]:5000`, `UPPER`). Empty if the first part is a name on Docker Hub or of a
/// local image.
std::string_view registry_host(std::string_view reference);
/// Returns true if an engine accepts the text as an image reference.
bool is_image_reference(std::string_view text);
/// Returns true if an engine accepts the text as a reference without tag and digest.
bool is_image_repository(std::string_view text);
bool is_image_tag(std::string_view text);

}  // namespace pipeline::settings
