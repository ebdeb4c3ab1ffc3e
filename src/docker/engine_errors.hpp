/// @file
/// Explains an engine's error texts and gives advice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// Returns advice for an error text from an engine, a registry or a container runtime; none for an
/// unknown text.
/// @param registry the registry that the engine contacted; the default is a placeholder in the
/// advice
std::vector<std::string> advice_for(std::string_view text, std::string_view registry = "REGISTRY");

}  // namespace pipeline::docker
