#include "spec/env_file.hpp"

#include <algorithm>
#include <optional>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/utf8.hpp"

namespace pipeline::spec {
namespace {

constexpr std::string_view blanks = " \t";

/// Parses the text of a `.env` file.
class EnvParser {
 public:
  explicit EnvParser(std::string_view text) : text_(text) {}

  StringMap parse() {
    while (at_ < text_.size()) {
      skip(blanks);
      if (!ends_line() && text_[at_] != '#') read_entry();
      skip_line();
    }
    return std::move(values_);
  }
  std::vector<core::Diagnostic>& diagnostics() { return diagnostics_; }

 private:
  void read_entry() {
    if (text_.substr(at_).starts_with("export ") || text_.substr(at_).starts_with("export\t")) {
      at_ += 7;
      skip(blanks);
    }
    const auto begin = at_;
    while (!ends_line() && text_[at_] != '=' && blanks.find(text_[at_]) == blanks.npos) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    skip(blanks);
    if (!core::is_variable_name(name))
      return report("bad-name", begin, "this is not the name of a variable",
                    "a name has letters, digits and `_`, and does not begin with a digit");
    if (ends_line() || text_[at_] != '=')
      return report("bad-env-line", at_, "expected `=` after the variable's name",
                    "write NAME=VALUE; a value of several lines is put in quotes");
    ++at_;
    skip(blanks);
    const auto value_begin = at_;
    auto value = read_value(name);
    if (const auto null = text_.substr(0, at_).find('\0', value_begin); null != text_.npos)
      return report("bad-env-line", null,
                    "the value of " + name + " contains a byte 0, which no variable can have",
                    "save the file as plain text in UTF-8");
    if (value && !values_.emplace(name, std::move(*value)).second)
      report("duplicate-key", begin, name + " is there twice", "keep one of the lines");
  }

  std::optional<std::string> read_value(const std::string& name) {
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\''))
      return read_quoted(name, text_[at_]);
    const auto begin = at_;
    while (!ends_line() &&
           !(text_[at_] == '#' && at_ > begin && blanks.find(text_[at_ - 1]) != blanks.npos))
      ++at_;
    auto value = text_.substr(begin, at_ - begin);
    if (const auto reference = value.find("${"); reference != value.npos) {
      refuse_reference(name, begin + reference);
      return std::nullopt;
    }
    const auto last = value.find_last_not_of(blanks);
    return std::string(value.substr(0, last == value.npos ? 0 : last + 1));
  }

  std::optional<std::string> read_quoted(const std::string& name, char quote) {
    const auto begin = at_++;
    std::string value;
    bool is_refused = false;  // Then the value is read on to its closing quote, but not returned.
    for (;; ++at_) {
      if (at_ == text_.size()) {
        at_ = begin;
        report("bad-env-line", begin, "the value of " + name + " has no closing quote",
               std::string("end it with ") + quote);
        return std::nullopt;
      }
      const char c = text_[at_];
      if (c == quote) break;
      if (!is_refused && quote == '"' && text_.substr(at_).starts_with("${")) {
        refuse_reference(name, at_);
        is_refused = true;
      }
      const bool is_escape = quote == '"' && c == '\\' && at_ + 1 < text_.size();
      value += is_escape ? escaped(text_[++at_]) : std::string(1, c);
    }
    ++at_;
    skip(blanks);
    if (is_refused) return std::nullopt;
    if (ends_line() || text_[at_] == '#') return value;
    report("bad-env-line", at_, "there is more after the quoted value of " + name,
           "put the whole value in quotes; `#` begins a comment");
    return std::nullopt;
  }

  static std::string escaped(char c) {
    switch (c) {
      case 'n': return "\n";
      case 't': return "\t";
      case '"':
      case '\\':
      case '$': return std::string(1, c);
      default: return std::string("\\") + c;
    }
  }

  void refuse_reference(const std::string& name, std::size_t where) {
    report("bad-env-line", where,
           "the value of " + name + " contains `${`, and nothing is expanded here",
           "write the value itself; in single quotes it is taken literally");
  }

  bool ends_line() const {
    return at_ >= text_.size() || text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n");
  }
  void skip(std::string_view characters) {
    while (at_ < text_.size() && characters.find(text_[at_]) != characters.npos) ++at_;
  }
  void skip_line() {
    const auto end = text_.find('\n', at_);
    at_ = end == text_.npos ? text_.size() : end + 1;
  }

  void report(const char* code, std::size_t where, std::string message, std::string suggestion) {
    const auto before = text_.substr(0, where);
    core::Diagnostic found;
    found.code = code;
    found.message = std::move(message);
    found.span.line = static_cast<unsigned>(std::ranges::count(before, '\n')) + 1;
    const auto newline = before.rfind('\n');
    found.span.column =
        static_cast<unsigned>(newline == before.npos ? where : where - newline - 1) + 1;
    found.suggestion = std::move(suggestion);
    diagnostics_.push_back(std::move(found));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  StringMap values_;
  std::vector<core::Diagnostic> diagnostics_;
};

}  // namespace

StringMap parse_env(std::string_view text, const std::filesystem::path& file) {
  EnvParser parser(core::without_byte_order_mark(text));
  auto values = parser.parse();
  // The errors do not show lines of the source, because the lines have values.
  if (!parser.diagnostics().empty())
    throw core::InputError(std::move(parser.diagnostics()), file.string(), {});
  return values;
}

bool takes_users_variables(const StepSpec& step) {
  return std::ranges::any_of(step.environment, [](const auto& each) { return !each.second; }) ||
         std::ranges::any_of(step.secrets, [](const auto& secret) { return !secret.file; });
}

}  // namespace pipeline::spec
