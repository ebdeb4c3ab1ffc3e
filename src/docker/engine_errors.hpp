/// @file
/// Explains an engine's error texts and gives advice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// Returns advice for a text from an engine, a registry or a container runtime, if known.
/// @param registry the registry that the engine contacted, if known
std::vector<std::string> advice_for(std::string_view text, std::string_view registry = "REGISTRY");

}  // namespace pipeline::docker
