#include "orchestrators/shell_line.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"

namespace pipeline::orchestrators {
namespace {

using Kind = core::ShellLexer::Kind;

std::string escape(std::string_view text, std::string_view special) {
  std::string escaped;
  for (char c : text) {
    if (special.find(c) != special.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

void ShellLine::add_text(std::string_view text) {
  for (char c : text) lexer_.next(c);
}

void ShellLine::add_value(std::string_view value) {
  const auto& context = lexer_.contexts().back();
  std::string text;
  if (lexer_.is_in_delimiter())
    throw core::InputError("A value cannot be the end mark of a here-document (`<<`).");
  if (lexer_.is_escaped())  // The author's backslash would escape the first byte of the value.
    lexer_.drop_escape();
  switch (context.kind) {
    case Kind::single_quotes:
      for (char c : value) text += c == '\'' ? "'\\''" : std::string(1, c);
      break;
    case Kind::double_quotes: text = escape(value, "\\\"$`"); break;
    case Kind::comment:
      text = value;
      std::replace(text.begin(), text.end(), '\n', ' ');
      break;
    case Kind::here_document: {
      const auto& document = lexer_.document();
      if (!document.quoted) {
        // A line that would end the document is passed in a variable instead.
        std::string name = "pipe_value_" + std::to_string(++values_);
        assignments_ += name + "=" + core::shell_quote(value) + "; ";
        text = "${" + name + "}";
        break;
      }
      for (std::size_t from = 0; from <= value.size();) {
        auto to = std::min(value.find('\n', from), value.size());
        if (value.substr(from, to - from).find(document.delimiter) != value.npos)
          throw core::InputError("A value within the here-document `<<'" + document.delimiter +
                                     "'` contains `" + document.delimiter +
                                     "`, which would end it.",
                                 "choose another end mark, or write it unquoted");
        from = to + 1;
      }
      text = value;
      break;
    }
    case Kind::arithmetic:
      if (!is_integer(value))
        throw core::InputError("A value within $((...)) must be an integer, not `" +
                               std::string(value) + "`.");
      text = value;
      break;
    case Kind::braces:
      text = context.in_double_quotes ? escape(value, "\\\"$`}")
             : value.empty()          ? "''"
                                      : core::shell_quote(value);
      break;
    case Kind::word:
    case Kind::substitution:
    case Kind::backquotes: text = core::shell_quote(value); break;
  }
  // Within backquotes, the shell removes one level of backslashes first.
  for (const auto& outer : lexer_.contexts())
    if (outer.kind == Kind::backquotes) text = escape(text, "\\`");
  lexer_.add_verbatim(text);
}

}  // namespace pipeline::orchestrators
