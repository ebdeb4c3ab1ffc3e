/// @file
/// A line for `sh -c`, written piece by piece: the author's text as it stands, and values that must
/// come out as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators {

/// Follows the shell's quoting (POSIX 2.2, 2.3, 2.6, 2.7.4) through the author's text, so that a
/// value is escaped for the place where it stands: a word of its own, within '...' or "...", in a
/// here-document, in backquotes.
class ShellLine {
 public:
  void add_text(std::string_view text);
  /// Adds a value. Throws InputError where none can be written safely: in an arithmetic expression
  /// anything but an integer, in a quoted here-document a line that would end it.
  void add_value(std::string_view value);
  std::string finish() const { return assignments_ + line_; }
  /// True if the author's text joins two commands by `|`.
  bool has_pipe() const { return pipes_ > 0; }

 private:
  enum class Kind {
    word,
    single_quotes,
    double_quotes,
    comment,
    backquotes,
    substitution,
    arithmetic,
    braces,
    here_document
  };
  struct Context {
    Kind kind;
    bool in_double_quotes =
        false;      ///< Of `braces`: those of "${X:-...}" follow the rules of double quotes.
    int depth = 0;  ///< Open parentheses within.
  };
  struct HereDocument {
    std::string end;
    bool quoted, strip_tabs;
  };
  void next(char c);
  void unquoted(char c);
  void end_of_line();
  void read_here_document_word(char c);
  bool follows(std::string_view text) const { return line_.ends_with(text); }

  std::string line_, assignments_;
  std::vector<Context> stack_{{Kind::word}};
  std::vector<HereDocument>
      pending_;  ///< Announced on this line; the first is the current one while in a here_document.
  enum class WordOf { none, before, within } here_word_ = WordOf::none;
  char here_quote_ = 0;
  std::size_t line_start_ = 0;
  bool escaped_ = false;
  int pipes_ = 0;
  int values_ = 0;
};

}  // namespace pipeline::orchestrators
