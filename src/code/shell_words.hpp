/// @file
/// Splits a shell script into words, well enough to find the files that it names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::code {

/// Stands in a word for values that only the shell knows (`$X`, `$(...)`), and for placeholders.
constexpr char unknown_value = '\x01';

struct ShellWord {
  std::string text;  ///< The word without its quotes.
  unsigned line = 1;
  bool operator==(const ShellWord&) const = default;
};

/// Returns the words of commands, redirections and command substitutions, in the order of the text,
/// without comments and here-documents.
std::vector<ShellWord> shell_words(std::string_view script);

}  // namespace pipeline::code
