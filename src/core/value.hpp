/// @file
/// A document as its author wrote it: every scalar, list and map has its source position. YAML and
/// JSON are parsed into this, and settings are decoded from it.
#pragma once

#include <cstdint>
#include <string>

#include <pipeline/rare.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::core {

struct Value {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  std::string scalar;     ///< The text as written, with quotes and escapes resolved.
  RareList<Value> items;  ///< Items of a list.
  struct Member;
  RareList<Member> members;  ///< Members of a map in the author's order; keys are unique scalars.
  Span span;
  Kind kind = Kind::null;
  bool quoted = false;  ///< A string even if it looks like a number: `"5"`, `!!str 5`, a block.
  /// Returns the member called `key`, or null.
  const Value* find(std::string_view key) const;
};

/// A key and its value; not a std::pair, which cannot be named while Value is incomplete.
struct Value::Member {
  Value first, second;
};

}  // namespace pipeline::core
