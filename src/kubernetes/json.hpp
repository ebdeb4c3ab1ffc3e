/// @file
/// Reading what a server sends: what is not there, or of another kind, is empty.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pipeline::kubernetes {

/// The value at a JSON pointer, `/status/phase`; null if there is none.
inline const nlohmann::json& at(const nlohmann::json& object, const std::string& pointer) {
  static const nlohmann::json none;
  const nlohmann::json::json_pointer place(pointer);
  return object.contains(place) ? object.at(place) : none;
}

inline std::string text_at(const nlohmann::json& object, const std::string& pointer) {
  const auto& value = at(object, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline long long number_at(const nlohmann::json& object, const std::string& pointer) {
  const auto& value = at(object, pointer);
  return value.is_number_integer() ? value.get<long long>() : 0;
}

/// A list to walk through; an empty one for anything else.
inline const nlohmann::json& list_at(const nlohmann::json& object, const std::string& pointer) {
  static const nlohmann::json none = nlohmann::json::array();
  const auto& value = at(object, pointer);
  return value.is_array() ? value : none;
}

}  // namespace pipeline::kubernetes
