/// @file
/// The one reader of an image's name, `[HOST/]NAME[:TAG][@DIGEST]`, by the rules of
/// github.com/distribution/reference.
#pragma once

#include <string_view>

namespace pipeline::settings {

/// The registry that a name begins with, as it is written (`ghcr.io`, `host:5000`, `[::1]:5000`,
/// `UPPER`); empty where the first part belongs to the name on Docker Hub or to an image of this
/// machine's.
std::string_view registry_host(std::string_view reference);
/// Whether an engine takes the whole as an image's name.
bool is_image_reference(std::string_view text);
/// The same without tag and digest.
bool is_image_repository(std::string_view text);
bool is_image_tag(std::string_view text);

}  // namespace pipeline::settings
