/// @file
/// A line for `sh -c`, composed of the author's text, which stays unchanged, and values that the
/// shell must not interpret.
#pragma once

#include <string>
#include <string_view>

#include "core/shell_lexer.hpp"

namespace pipeline::orchestrators {

/// Tracks the shell's quoting through the author's text, so that a value is escaped for its
/// context: an unquoted word, '...', "...", a here-document, or backquotes.
class ShellLine {
 public:
  /// Adds text of the author, which the shell interprets.
  void add_text(std::string_view text);
  /// Adds a value. Throws InputError for a value that cannot be escaped in its context. An
  /// arithmetic expression takes only integers. In a quoted here-document, no line of the value may
  /// contain the end mark.
  void add_value(std::string_view value);
  /// Returns the line.
  std::string finish() const { return assignments_ + lexer_.text(); }
  /// Returns true if the author's text joins two commands by `|`.
  bool has_pipe() const { return lexer_.has_pipe(); }

 private:
  core::ShellLexer lexer_;
  std::string assignments_;  ///< Variables with values of here-documents; precede the line.
  int values_ = 0;           ///< Number of these variables.
};

}  // namespace pipeline::orchestrators
