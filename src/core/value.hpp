/// @file
/// A document as its author wrote it: every scalar, list and map with its place. What YAML and JSON
/// parse to, and settings are decoded from.
#pragma once

#include <string>
#include <vector>

#include "core/diagnostic.hpp"

namespace pipeline::core {

struct Value {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string scalar;        ///< As written, quotes and escapes resolved.
  bool quoted = false;       ///< Quoted scalars are strings, also `"5"` and `"true"`.
  std::vector<Value> items;  ///< Of a list.
  struct Member;
  std::vector<Member> members;  ///< Of a map, in the author's order; keys are scalars, unique.
  Span span;
  /// The member called `key`, or nothing.
  const Value* find(std::string_view key) const;
};

/// A key and its value. A struct of its own, for std::pair cannot be named while Value is
/// incomplete.
struct Value::Member {
  Value first, second;
};

}  // namespace pipeline::core
