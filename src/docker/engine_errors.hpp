/// @file
/// What an engine's error texts mean, and what a user can do about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// Advice for a text from an engine, a registry or a container's runtime; none for what is not known.
std::vector<std::string> advice_for(std::string_view text);

}  // namespace pipeline::docker
