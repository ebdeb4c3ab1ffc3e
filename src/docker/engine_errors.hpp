/// @file
/// What an engine's error texts mean, and what a user can do about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// Advice for a text from an engine, a registry or a container's runtime; none for what is not
/// known.
/// @param registry that the engine was to talk to, if that is known
std::vector<std::string> advice_for(std::string_view text, std::string_view registry = "REGISTRY");

}  // namespace pipeline::docker
