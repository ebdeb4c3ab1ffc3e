/// @file
/// Regular expressions whose cost cannot run away: matched in time proportional to pattern times
/// text, whatever they are (Thompson's construction; no backtracking). Literals, `.`, classes, `\d
/// \w \s` and their opposites, groups, `|`, `* + ? {m,n}`, `^` and `$`; no back references. Not
/// RE2: since 2023 it depends on Abseil, much to link and start for a text of a few words in one
/// setting.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pipeline::gpu {

/// What is wrong with a text, and where in it.
struct TextError {
  std::size_t offset = 0;
  std::string message;
};

class Pattern {
 public:
  static std::variant<Pattern, TextError> compile(std::string_view text);
  /// True if the whole text is what the pattern describes.
  bool matches(std::string_view text) const;

 private:
  friend class PatternCompiler;
  using Bytes = std::bitset<256>;
  struct Instruction {
    enum class Kind { byte, split, begin, end, accept };
    Kind kind;
    Bytes bytes;                            ///< Of `byte`: those that are taken.
    std::size_t next = 0, alternative = 0;  ///< `split` goes both ways.
  };
  std::vector<Instruction> program_;
  std::size_t start_ = 0;
};

}  // namespace pipeline::gpu
