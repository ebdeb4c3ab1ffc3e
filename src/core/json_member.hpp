/// @file
/// Finds members of a JSON value by name.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pipeline::core {

/// Returns the member of a map, or the item of a list by its number from 0; null if there is none.
inline const nlohmann::json* member(const nlohmann::json& value, std::string_view name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  if (!value.is_array()) return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_there =
      error == std::errc() && end == name.data() + name.size() && index < value.size();
  return is_there ? &value[index] : nullptr;
}

/// Returns the text member of an object; empty if the member is missing or not a text.
inline std::string text_at(const nlohmann::json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace pipeline::core
