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
  const nlohmann::json::json_pointer place{std::string(pointer)};
  return object.contains(place) ? object.at(place) : none;
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

/// Returns the token of a list's next page; empty for the last page.
/// @param token of this page
/// @throws core::EnvironmentError if both are the same: such a list does not end
inline std::string next_page(const nlohmann::json& page, std::string_view token) {
  auto next = text_at(page, "/metadata/continue");
  if (!next.empty() && next == token)
    throw core::EnvironmentError("a list of the cluster's API server does not end");
  return next;
}

}  // namespace pipeline::kubernetes_api
