/// @file
/// Tracks the shell's quoting through a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

/// Reads one character at a time and tracks its context (POSIX 2.2, 2.3, 2.6, 2.7.4): quotes,
/// comments, expansions, here-documents.
class ShellLexer {
 public:
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
    /// The rules of double quotes apply in `braces`, as in "${X:-...}".
    bool in_double_quotes = false;
    int depth = 0;  ///< Number of open parentheses within.
  };
  struct HereDocument {
    std::string delimiter;  ///< Without quotes.
    bool quoted;            ///< The delimiter has quotes, so that nothing is expanded.
    bool strip_tabs;        ///< The operator is `<<-`.
  };

  /// Reads the next character.
  void next(char c);
  /// Appends text that has no character that ends a context.
  void add_verbatim(std::string_view text) {
    text_ += text;
    in_word_ = true;
  }
  /// Removes the backslash that was read last.
  void drop_escape() {
    text_.pop_back();
    escaped_ = false;
  }

  /// The contexts from the outermost, which is a `word`, to that of the next character.
  const std::vector<Context>& contexts() const { return stack_; }
  Kind kind() const { return stack_.back().kind; }
  bool is_escaped() const { return escaped_; }  ///< The last character was an unquoted backslash.
  /// Returns true from `<<` to the end of the delimiter of the here-document.
  bool is_in_delimiter() const { return delimiter_state_ != DelimiterState::none; }
  /// Returns the current here-document; call it only in the context `here_document`.
  const HereDocument& document() const { return pending_.front(); }
  const std::string& text() const { return text_; }  ///< All text read so far.
  /// Returns true if the text joins two commands by `|`.
  bool has_pipe() const { return pipes_ > 0; }

 private:
  void unquoted(char c);
  void close_expansion();
  void end_line();
  void read_delimiter(char c);
  bool follows(std::string_view text) const { return text_.ends_with(text); }

  std::string text_;
  std::vector<Context> stack_{{Kind::word}};
  /// Here-documents that were announced on this line and have not ended; in the context
  /// `here_document`, the first is the current one.
  std::vector<HereDocument> pending_;
  /// The place of the next character: in no delimiter, in the blanks before one, or within one.
  enum class DelimiterState { none, before, within } delimiter_state_ = DelimiterState::none;
  char delimiter_quote_ = 0;  ///< The open quote within a delimiter; 0 for none.
  std::size_t line_start_ = 0;
  int pipes_ = 0;  ///< Number of `|` outside of quotes, without those of `||` and `>|`.
  bool escaped_ = false;
  bool in_word_ = false;  ///< While true, a `#` begins no comment.
};

}  // namespace pipeline::core
