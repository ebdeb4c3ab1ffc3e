#include "code/shell_words.hpp"

#include <utility>

#include "core/shell_lexer.hpp"
#include "core/text.hpp"

namespace pipeline::code {
namespace {

bool is_one_of(char c, std::string_view characters) {
  return characters.find(c) != characters.npos;
}

bool is_name_character(char c) { return core::is_alnum(c) || c == '_'; }

/// Builds words from the lexer's contexts, one character at a time.
class WordReader {
 public:
  std::vector<ShellWord> read(std::string_view script) {
    for (const char c : script) step(c);
    end_variable();
    while (frames_.size() > 1) leave();
    finish();
    return std::move(words_);
  }

 private:
  using Kind = core::ShellLexer::Kind;
  /// The command line itself, or an expansion in it.
  struct Frame {
    std::size_t level;  ///< Number of contexts that the lexer is in.
    bool has_words;     ///< False within `${...}` and `$((...))`, which have no words of commands.
    std::string word{};
    unsigned line = 1;
    bool in_word = false;
  };
  enum class Variable { none, dollar, name };

  Frame& frame() { return frames_.back(); }

  /// Begins a word, which may stay empty, unless one has begun.
  void begin() {
    if (!std::exchange(frame().in_word, true)) frame().line = line_;
  }

  void add(char c) {
    begin();
    frame().word += c;
  }

  /// Ends the current word, if there is one.
  void finish() {
    if (frame().in_word && frame().has_words) words_.push_back({frame().word, frame().line});
    frame().word.clear();
    frame().in_word = false;
  }

  /// Ends an expansion: its value is unknown in the word around it.
  void leave() {
    finish();
    frames_.pop_back();
    add(unknown_value);
  }

  /// Adds a `$` that begins no variable as literal text.
  void end_variable() {
    if (std::exchange(variable_, Variable::none) == Variable::dollar) add('$');
  }

  /// Returns true if the character belongs to a `$NAME`.
  bool read_variable(char c) {
    if (variable_ == Variable::name && is_name_character(c)) return true;
    if (variable_ == Variable::dollar && (is_name_character(c) || is_one_of(c, "@*#?-$!"))) {
      variable_ = is_name_character(c) ? Variable::name : Variable::none;
      add(unknown_value);
      return true;
    }
    end_variable();
    return false;
  }

  void step(char c) {
    const auto kind = lexer_.kind();
    const auto old_level = lexer_.contexts().size();
    const bool escaped = lexer_.is_escaped(), in_delimiter = lexer_.is_in_delimiter();
    lexer_.next(c);
    const auto level = lexer_.contexts().size();
    if (level > old_level && is_expansion(lexer_.kind())) {
      if (lexer_.kind() == Kind::backquotes) end_variable();
      variable_ = Variable::none;
      const bool has_words = frame().has_words && lexer_.kind() != Kind::braces;
      frames_.push_back({level, has_words});
    } else if (lexer_.kind() == Kind::arithmetic && level == frame().level) {
      frame() = {level, false};
    } else if (level < frame().level) {
      end_variable();
      leave();
    } else if (lexer_.is_in_delimiter()) {
      if (!in_delimiter) finish();
    } else if (kind != Kind::comment && kind != Kind::here_document) {
      if (!read_variable(c)) read_character(c, kind, escaped);
    } else if (kind == Kind::comment && c == '\n') {
      finish();
    }
    line_ += c == '\n';
  }

  static bool is_expansion(Kind kind) {
    return kind == Kind::substitution || kind == Kind::backquotes || kind == Kind::braces;
  }

  void read_character(char c, Kind kind, bool escaped) {
    const bool quoted = is_quote(kind);
    if (lexer_.is_escaped() || lexer_.kind() == Kind::comment) return;
    if (escaped) {
      if (kind == Kind::double_quotes && !is_one_of(c, "$`\"\\\n")) add('\\');
      if (c != '\n') add(c);
    } else if (lexer_.kind() != kind && (quoted || is_quote(lexer_.kind()))) {
      begin();  // A quote opens or closes.
    } else if (c == '$' && kind != Kind::single_quotes) {
      variable_ = Variable::dollar;
    } else if (!quoted && is_one_of(c, " \t\r\n;|&()<>")) {
      finish();
    } else {
      add(c);
    }
  }

  static bool is_quote(Kind kind) {
    return kind == Kind::single_quotes || kind == Kind::double_quotes;
  }

  core::ShellLexer lexer_;
  std::vector<Frame> frames_{{0, true}};
  std::vector<ShellWord> words_;
  Variable variable_ = Variable::none;
  unsigned line_ = 1;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view script) { return WordReader().read(script); }

}  // namespace pipeline::code
