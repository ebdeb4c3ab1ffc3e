/// @file
/// A line for `sh -c`, written piece by piece: the author's text as it stands, and values that must
/// come out as they are.
#pragma once

#include <string>
#include <string_view>

#include "core/shell_lexer.hpp"

namespace pipeline::orchestrators {

/// Follows the shell's quoting through the author's text, so that a value is escaped for the place
/// where it stands: a word of its own, within '...' or "...", in a here-document, in backquotes.
class ShellLine {
 public:
  void add_text(std::string_view text);
  /// Adds a value. Throws InputError where none can be written safely: in an arithmetic expression
  /// anything but an integer, in a quoted here-document a line that would end it.
  void add_value(std::string_view value);
  std::string finish() const { return assignments_ + lexer_.text(); }
  /// True if the author's text joins two commands by `|`.
  bool has_pipe() const { return lexer_.has_pipe(); }

 private:
  core::ShellLexer lexer_;
  std::string assignments_;
  int values_ = 0;
};

}  // namespace pipeline::orchestrators
