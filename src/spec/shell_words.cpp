#include "spec/shell_words.hpp"

#include <algorithm>
#include <utility>

namespace pipeline::spec {
namespace {

constexpr unsigned deepest_substitution = 50;

class ShellLexer {
 public:
  ShellLexer(std::string_view script, unsigned line, unsigned depth, std::vector<ShellWord>& words)
      : script_(script), line_(line), depth_(depth), words_(words) {}

  void run() {
    while (at_ < script_.size()) step();
    finish();
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < script_.size() ? script_[at_ + ahead] : '\0';
  }

  void add(char c) {
    if (!in_word_) word_line_ = line_;
    in_word_ = true;
    word_ += c;
  }

  void finish() {
    if (!in_word_) return;
    if (takes_delimiter_)
      delimiters_.push_back(word_);
    else
      words_.push_back({word_, word_line_});
    takes_delimiter_ = false;
    word_.clear();
    in_word_ = false;
  }

  void step() {
    const char c = peek();
    if (c == '\\') {
      if (peek(1) == '\n')
        ++line_;
      else if (at_ + 1 < script_.size())
        add(peek(1));
      at_ += 2;
    } else if (c == '\'') {
      const auto end = std::min(script_.find('\'', at_ + 1), script_.size());
      if (!in_word_) word_line_ = line_;
      in_word_ = true;
      for (const char each : script_.substr(at_ + 1, end - at_ - 1))
        word_ += each, line_ += each == '\n';
      at_ = end + 1;
    } else if (c == '"') {
      read_double_quotes();
    } else if (c == '$' || c == '`') {
      read_expansion();
    } else if (c == '#' && !in_word_) {
      at_ = std::min(script_.find('\n', at_), script_.size());
    } else if (script_.substr(at_).starts_with("<<<")) {  // the next word is data, not a delimiter
      finish();
      at_ += 3;
    } else if (c == '<' && peek(1) == '<') {
      finish();
      at_ += 2;
      if (peek() == '-') ++at_;
      takes_delimiter_ = true;
    } else if (c == '\n') {
      finish();
      ++line_, ++at_;
      for (const auto& delimiter : std::exchange(delimiters_, {})) skip_document(delimiter);
    } else if (std::string_view(" \t\r;|&()<>").find(c) != std::string_view::npos) {
      finish();
      ++at_;
    } else {
      add(c);
      ++at_;
    }
  }

  void read_double_quotes() {
    if (!in_word_) word_line_ = line_;
    in_word_ = true;
    for (++at_; at_ < script_.size() && peek() != '"';) {
      if (peek() == '$' || peek() == '`') {
        read_expansion();
        continue;
      }
      if (peek() == '\\' && at_ + 1 < script_.size() &&
          std::string_view("$`\"\\\n").find(peek(1)) != std::string_view::npos)
        ++at_;
      if (peek() == '\n') ++line_;
      word_ += peek();
      ++at_;
    }
    ++at_;
  }

  void read_expansion() {
    if (peek() == '`') {
      const auto end = std::min(script_.find('`', at_ + 1), script_.size());
      substitute(script_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    } else if (peek(1) == '(') {  // `$((` is arithmetic: no words
      const auto end = closing(at_ + 2);
      if (peek(2) != '(') substitute(script_.substr(at_ + 2, end - at_ - 2));
      at_ = end + 1;
    } else if (peek(1) == '{') {
      const auto end = std::min(script_.find('}', at_), script_.size());
      line_ += static_cast<unsigned>(std::count(script_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                script_.begin() + static_cast<std::ptrdiff_t>(end),
                                                '\n'));
      at_ = end + 1;
    } else {
      ++at_;
      const auto start = at_;
      while ((peek() >= 'a' && peek() <= 'z') || (peek() >= 'A' && peek() <= 'Z') ||
             (peek() >= '0' && peek() <= '9') || peek() == '_')
        ++at_;
      if (at_ == start && std::string_view("@*#?-$!").find(peek()) != std::string_view::npos)
        ++at_;
      else if (at_ == start)
        return add('$');
    }
    add(unknown_value);
  }

  /// The `)` that closes a substitution begun before `from`.
  std::size_t closing(std::size_t from) const {
    int open = 1;
    char quote = '\0';
    for (; from < script_.size(); ++from) {
      const char c = script_[from];
      if (c == '\\' && quote != '\'')
        ++from;
      else if (quote != '\0')
        quote = c == quote ? '\0' : quote;
      else if (c == '"' || c == '\'')
        quote = c;
      else if (c == '(')
        ++open;
      else if (c == ')' && --open == 0)
        return from;
    }
    return script_.size();
  }

  void substitute(std::string_view inner) {
    if (depth_ < deepest_substitution) ShellLexer(inner, line_, depth_ + 1, words_).run();
    line_ += static_cast<unsigned>(std::count(inner.begin(), inner.end(), '\n'));
  }

  void skip_document(const std::string& delimiter) {
    while (at_ < script_.size()) {
      const auto end = std::min(script_.find('\n', at_), script_.size());
      auto text = script_.substr(at_, end - at_);
      at_ = std::min(end + 1, script_.size());
      ++line_;
      text.remove_prefix(std::min(text.find_first_not_of('\t'), text.size()));
      if (text == delimiter) return;
    }
  }

  std::string_view script_;
  std::size_t at_ = 0;
  unsigned line_, depth_;
  std::vector<ShellWord>& words_;
  std::string word_;
  unsigned word_line_ = 1;
  bool in_word_ = false, takes_delimiter_ = false;
  std::vector<std::string> delimiters_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view script) {
  std::vector<ShellWord> words;
  ShellLexer(script, 1, 0, words).run();
  return words;
}

}  // namespace pipeline::spec
