/// @file
/// A document as its author wrote it: every scalar, list and map with its place. What YAML and JSON parse to, and settings are decoded from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/diagnostic.hpp"

namespace pipeline {

struct Value {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string scalar;  ///< As written, quotes and escapes resolved.
  bool quoted = false;  ///< Quoted scalars are strings, also `"5"` and `"true"`.
  std::vector<Value> items;                      ///< Of a list.
  std::vector<std::pair<Value, Value>> members;  ///< Of a map, in the author's order; keys are scalars, unique.
  Span span;
  /// The member called `key`, or nothing.
  const Value* find(std::string_view key) const;
};

}  // namespace pipeline
