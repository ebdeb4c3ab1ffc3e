#include "code/python_imports.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace pipeline::code {
namespace {

struct PythonToken {
  enum class Kind { name, text, symbol, line_end } kind;
  std::string text;  ///< Content of a string literal, with escapes as written.
  unsigned line;
};

bool begins_name(char c) {
  return core::is_lower(c) || core::is_upper(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) { return begins_name(c) || core::is_digit(c); }

/// Splits Python into the tokens that imports need: names, string literals and single symbols.
/// Logical lines end with line_end.
class PythonLexer {
 public:
  explicit PythonLexer(std::string_view source) : source_(source) {}

  std::vector<PythonToken> run() {
    while (at_ < source_.size()) step();
    tokens_.push_back({PythonToken::Kind::line_end, "", line_});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void step() {
    const char c = peek();
    if (c == '\n') {
      if (open_ == 0) tokens_.push_back({PythonToken::Kind::line_end, "", line_});
      ++line_;
      ++at_;
    } else if (c == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == '"' || c == '\'') {
      read_text();
    } else if (begins_name(c)) {
      read_name();
    } else {
      if (c == '(' || c == '[' || c == '{') ++open_;
      if ((c == ')' || c == ']' || c == '}') && open_ > 0) --open_;
      if (c != ' ' && c != '\t' && c != '\r')
        tokens_.push_back({PythonToken::Kind::symbol, std::string(1, c), line_});
      ++at_;
    }
  }

  void read_name() {
    const auto start = at_;
    while (continues_name(peek())) ++at_;
    const auto name = source_.substr(start, at_ - start);
    const bool is_prefix =
        name.size() <= 2 && name.find_first_not_of("rRbBuUfF") == std::string_view::npos;
    if (is_prefix && (peek() == '"' || peek() == '\''))
      read_text();
    else
      tokens_.push_back({PythonToken::Kind::name, std::string(name), line_});
  }

  void read_text() {
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const unsigned line = line_;
    at_ += triple ? 3 : 1;
    const auto start = at_;
    for (; at_ < source_.size(); ++at_) {
      const char c = peek();
      // Also in raw literals, a quote after a backslash does not close the literal.
      if (c == '\\') {
        if (peek(1) == '\r' && peek(2) == '\n') ++at_;
        if (peek(1) == '\n') ++line_;
        ++at_;
      } else if (c == '\n') {
        if (!triple) break;  // The literal is not closed: continue with the next line.
        ++line_;
      } else if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        break;
      }
    }
    at_ = std::min(at_, source_.size());
    tokens_.push_back(
        {PythonToken::Kind::text, std::string(source_.substr(start, at_ - start)), line});
    if (peek() == quote) at_ += triple ? 3 : 1;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
  int open_ = 0;  ///< Number of open brackets.
  std::vector<PythonToken> tokens_;
};

/// Finds the imports in the tokens.
class ImportReader {
 public:
  explicit ImportReader(std::vector<PythonToken> tokens) : tokens_(std::move(tokens)) {}

  std::vector<PythonImport> run() {
    bool begins_statement = true;
    while (at_ < tokens_.size()) {
      const PythonToken& token = tokens_[at_];
      if (begins_statement && is_name("import"))
        read_import();
      else if (begins_statement && is_name("from"))
        read_from();
      else if (is_name("import_module") || is_name("__import__"))
        read_call();
      else
        ++at_;
      begins_statement =
          token.kind == PythonToken::Kind::line_end ||
          (token.kind == PythonToken::Kind::symbol && (token.text == ";" || token.text == ":"));
    }
    return std::move(imports_);
  }

 private:
  bool is_symbol(std::string_view text) const {
    return at_ < tokens_.size() && tokens_[at_].kind == PythonToken::Kind::symbol &&
           tokens_[at_].text == text;
  }
  bool is_name(std::string_view text) const {
    return at_ < tokens_.size() && tokens_[at_].kind == PythonToken::Kind::name &&
           tokens_[at_].text == text;
  }
  bool is_any_name() const {
    return at_ < tokens_.size() && tokens_[at_].kind == PythonToken::Kind::name;
  }
  /// Reads the symbol if it comes next.
  bool accept(std::string_view symbol) { return is_symbol(symbol) && ++at_; }

  std::string read_dotted() {
    std::string name;
    while (is_any_name() && !is_name("import")) {
      name += tokens_[at_++].text;
      if (!accept(".")) break;
      name += '.';
    }
    if (name.ends_with('.')) name.pop_back();
    return name;
  }

  void skip_alias() {
    if (is_name("as")) at_ += 2;
  }

  void read_import() {
    const unsigned line = tokens_[at_++].line;
    do {
      PythonImport import{0, read_dotted(), {}, line};
      if (!import.module.empty()) imports_.push_back(std::move(import));
      skip_alias();
    } while (accept(","));
  }

  void read_from() {
    PythonImport import{0, {}, {}, tokens_[at_++].line};
    while (accept(".")) ++import.level;
    import.module = read_dotted();
    if (!is_name("import"))
      return;  // The statement is incomplete, as in a text that is not Python.
    ++at_;
    if (accept("*")) {
      import.names.push_back("*");
    } else {
      accept("(");
      while (is_any_name()) {
        import.names.push_back(tokens_[at_++].text);
        skip_alias();
        if (!accept(",")) break;
      }
    }
    if (import.level > 0 || !import.module.empty()) imports_.push_back(std::move(import));
  }

  /// Returns the absolute name of a relative one, as `a.c` for `..c` in the package `a.b`; empty if
  /// it leads out of the packages.
  static std::string resolved(std::string_view relative, std::string package) {
    const auto level = std::min(relative.find_first_not_of('.'), relative.size());
    for (std::size_t i = 1; i < level; ++i) {
      const auto dot = package.rfind('.');
      if (dot == std::string::npos) return {};
      package.resize(dot);
    }
    const auto name = relative.substr(level);
    return name.empty() ? package : package + "." + std::string(name);
  }

  /// Reads `import_module("a.b")`, `import_module(".c", package="a")` and
  /// `import_module(".c", "a")`.
  void read_call() {
    const unsigned line = tokens_[at_++].line;
    if (!accept("(") || at_ >= tokens_.size() || tokens_[at_].kind != PythonToken::Kind::text)
      return;
    std::string module = tokens_[at_++].text;
    if (module.starts_with('.')) {
      if (!accept(",")) return;
      if (is_name("package")) {
        ++at_;
        accept("=");
      }
      if (at_ >= tokens_.size() || tokens_[at_].kind != PythonToken::Kind::text) {
        const auto level = std::min(module.find_first_not_of('.'), module.size());
        imports_.push_back({static_cast<unsigned>(level), module.substr(level), {}, line});
        return;
      }
      module = resolved(module, tokens_[at_++].text);
    }
    if (!module.empty()) imports_.push_back({0, std::move(module), {}, line});
  }

  std::vector<PythonToken> tokens_;
  std::size_t at_ = 0;
  std::vector<PythonImport> imports_;
};

}  // namespace

std::vector<PythonImport> python_imports(std::string_view source) {
  return ImportReader(PythonLexer(source).run()).run();
}

}  // namespace pipeline::code
