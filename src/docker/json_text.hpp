/// @file
/// Reads texts of the engine's JSON responses.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pipeline::docker {

/// Returns the text under this key of an object; empty if it is missing or no text.
inline std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace pipeline::docker
