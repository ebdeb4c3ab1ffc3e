/// @file
/// Regular expressions with bounded cost: matching takes time proportional to pattern times text
/// (Thompson's construction, no backtracking). Supports literals, `.`, classes, `\d \w \s` and
/// their negations, groups, `|`, `* + ? {m,n}`, `^` and `$`; no back references.
///
/// RE2 is not used, because it would replace only matches(), forty lines: ECS has Java's patterns,
/// and the parser has to refuse what these mean otherwise, and to name the position of an error.
/// Since 2023 RE2 also depends on Abseil.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pipeline::gpu {

/// An error in a text and its byte offset.
struct TextError {
  std::size_t offset = 0;
  std::string message;
};

class Pattern {
 public:
  /// Returns the pattern, or the first error in its text.
  static std::variant<Pattern, TextError> compile(std::string_view text);
  /// Returns true if the pattern matches the whole text.
  bool matches(std::string_view text) const;

 private:
  friend class PatternCompiler;
  using Bytes = std::bitset<256>;
  enum class Kind { byte, split, jump, begin, end };
  struct Instruction {
    Kind kind;
    Bytes bytes;          ///< For `byte`: the accepted bytes.
    int jump, other = 0;  ///< Distances to the next instruction; `split` continues at both.
  };
  using Program = std::vector<Instruction>;
  Program program_;  ///< A text matches if the program's end can be reached with its last byte.
};

}  // namespace pipeline::gpu
