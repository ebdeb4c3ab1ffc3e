/// @file
/// Documents made by the program instead of read from a text: each value with the place of what it was made from.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "core/value.hpp"

namespace pipeline::spec {

/// A text, whatever it looks like.
inline Value text_value(std::string text, Span span) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.scalar = std::move(text);
  value.quoted = true;
  value.span = span;
  return value;
}

/// A number, a boolean, a size: what YAML makes of it.
inline Value plain_value(std::string text, Span span) {
  auto value = text_value(std::move(text), span);
  value.quoted = false;
  return value;
}

inline Value empty_value(Value::Kind kind, Span span) {
  Value value;
  value.kind = kind;
  value.span = span;
  return value;
}

/// What JSON says; null is null.
Value value_of(const nlohmann::json& from, Span span);

/// Adds a member, or replaces it.
inline Value& set(Value& map, const std::string& key, Value value) {
  for (auto& [name, member] : map.members)
    if (name.scalar == key) return member = std::move(value);
  auto name = plain_value(key, value.span);
  map.members.push_back({std::move(name), std::move(value)});
  return map.members.back().second;
}

/// The member at the end of a path of maps, which are made where they are missing.
inline Value& set_in(Value& map, std::initializer_list<const char*> path, Value value) {
  Value* place = &map;
  for (auto key = path.begin(); key + 1 != path.end(); ++key) {
    Value* next = nullptr;
    for (auto& [name, member] : place->members)
      if (name.scalar == *key) next = &member;
    place = next ? next : &set(*place, *key, empty_value(Value::Kind::map, value.span));
  }
  return set(*place, *(path.end() - 1), std::move(value));
}

}  // namespace pipeline::spec
