/// @file
/// Reads a server's JSON: missing values and values of another type are returned as empty.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pipeline::kubernetes_api {

/// Returns the value at a JSON pointer such as `/status/phase`; null if there is none.
inline const nlohmann::json& at(const nlohmann::json& object, std::string_view pointer) {
  static const nlohmann::json none;
  const nlohmann::json::json_pointer path{std::string(pointer)};
  return object.contains(path) ? object.at(path) : none;
}

inline std::string text_at(const nlohmann::json& object, std::string_view pointer) {
  const auto& value = at(object, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline long long number_at(const nlohmann::json& object, std::string_view pointer) {
  const auto& value = at(object, pointer);
  return value.is_number_integer() ? value.get<long long>() : 0;
}

/// Returns the list at a JSON pointer; an empty list if there is none.
inline const nlohmann::json& list_at(const nlohmann::json& object, std::string_view pointer) {
  static const nlohmann::json none = nlohmann::json::array();
  const auto& value = at(object, pointer);
  return value.is_array() ? value : none;
}

/// Returns the item of this name in the list at a JSON pointer; null if there is none.
inline const nlohmann::json& named_at(const nlohmann::json& object, std::string_view pointer,
                                      std::string_view name) {
  static const nlohmann::json none;
  for (const auto& item : list_at(object, pointer))
    if (text_at(item, "/name") == name) return item;
  return none;
}

}  // namespace pipeline::kubernetes_api
