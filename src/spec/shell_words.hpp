/// @file
/// The words of a shell script, found by reading it: enough to see which files it names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::spec {

/// Stands in a word for what only the shell knows (`$X`, `$(...)`), and for the holes of a
/// template.
constexpr char unknown_value = '\x01';

struct ShellWord {
  std::string text;  ///< Quotes resolved.
  unsigned line = 1;
  bool operator==(const ShellWord&) const = default;
};

/// Words of commands, redirections and command substitutions, in the order of the text. Comments
/// and here-documents are left out.
std::vector<ShellWord> shell_words(std::string_view script);

}  // namespace pipeline::spec
