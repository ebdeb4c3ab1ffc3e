/// @file
/// Builds documents in the program instead of parsing a text. Each value gets the source position
/// of the value that it was derived from.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "core/value.hpp"

namespace pipeline::model {

/// A text, even if it reads as a number.
inline core::Value text_value(std::string text, core::Span span) {
  core::Value value;
  value.kind = core::Value::Kind::scalar;
  value.scalar = std::move(text);
  value.quoted = true;
  value.span = span;
  return value;
}

/// A number, boolean or size: a plain YAML scalar.
inline core::Value plain_value(std::string text, core::Span span) {
  auto value = text_value(std::move(text), span);
  value.quoted = false;
  return value;
}

inline core::Value empty_value(core::Value::Kind kind, core::Span span) {
  core::Value value;
  value.kind = kind;
  value.span = span;
  return value;
}

/// Converts JSON; null stays null.
core::Value value_of(const nlohmann::json& from, core::Span span);

/// Adds or replaces a member, and returns it.
inline core::Value& set(core::Value& map, const std::string& key, core::Value value) {
  for (auto& [name, member] : map.members)
    if (name.scalar == key) return member = std::move(value);
  auto name = plain_value(key, value.span);
  map.members.push_back({std::move(name), std::move(value)});
  return map.members.back().second;
}

/// Adds or replaces the member at the end of a path of maps, and returns it; creates missing maps.
inline core::Value& set_in(core::Value& map, std::initializer_list<const char*> path,
                           core::Value value) {
  core::Value* place = &map;
  for (auto key = path.begin(); key + 1 != path.end(); ++key) {
    core::Value* next = nullptr;
    for (auto& [name, member] : place->members)
      if (name.scalar == *key) next = &member;
    place = next ? next : &set(*place, *key, empty_value(core::Value::Kind::map, value.span));
  }
  return set(*place, *(path.end() - 1), std::move(value));
}

}  // namespace pipeline::model
