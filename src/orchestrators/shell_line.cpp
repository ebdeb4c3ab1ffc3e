#include "orchestrators/shell_line.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"

namespace pipeline::orchestrators {
namespace {

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
  for (char c : text) next(c);
}

void ShellLine::next(char c) {
  if (escaped_) {
    escaped_ = false;
    line_ += c;
    if (here_word_ == WordOf::within) pending_.back().end += c, pending_.back().quoted = true;
    return;
  }
  if (here_word_ != WordOf::none) return read_here_document_word(c);
  Context& here = stack_.back();
  switch (here.kind) {
    case Kind::single_quotes:
      if (c == '\'') stack_.pop_back();
      line_ += c;
      return;
    case Kind::comment:
      if (c == '\n')
        stack_.pop_back(), end_of_line();
      else
        line_ += c;
      return;
    case Kind::here_document: {
      line_ += c;
      if (c != '\n') return;
      std::string_view last(line_.data() + line_start_, line_.size() - line_start_ - 1);
      if (pending_.front().strip_tabs)
        last.remove_prefix(std::min(last.find_first_not_of('\t'), last.size()));
      line_start_ = line_.size();
      if (last != pending_.front().end) return;
      pending_.erase(pending_.begin());
      if (pending_.empty()) stack_.pop_back();
      return;
    }
    case Kind::double_quotes:
    case Kind::arithmetic:
      if (here.kind == Kind::double_quotes && c == '"') {
        stack_.pop_back();
        line_ += c;
        return;
      }
      break;
    case Kind::braces:
      if (c == '}') {
        stack_.pop_back();
        line_ += c;
        return;
      }
      break;
    case Kind::backquotes:
      if (c == '`') {
        stack_.pop_back();
        line_ += c;
        return;
      }
      break;
    case Kind::word:
    case Kind::substitution: break;
  }
  unquoted(c);
}

void ShellLine::unquoted(char c) {
  Context& here = stack_.back();
  bool quoted =
      here.kind == Kind::double_quotes || here.kind == Kind::arithmetic || here.in_double_quotes;
  bool word_start =
      line_.empty() || std::string_view(" \t\n;&|()`").find(line_.back()) != std::string_view::npos;
  bool expansion = follows("$") && !follows("\\$") && !follows("$$");
  line_ += c;
  switch (c) {
    case '\\': escaped_ = true; return;
    case '\'':
      if (!quoted) stack_.push_back({Kind::single_quotes});
      return;
    case '"':
      // Within "${X:-...}" a double quote toggles, which comes to the same as opening a pair.
      if (here.kind != Kind::arithmetic) stack_.push_back({Kind::double_quotes});
      return;
    case '`': stack_.push_back({Kind::backquotes}); return;
    case '{':
      if (expansion) stack_.push_back({Kind::braces, quoted});
      return;
    case '(':
      if (expansion)
        stack_.push_back({Kind::substitution});
      else if (here.kind == Kind::substitution && here.depth == 0 && follows("$(("))
        here.kind = Kind::arithmetic, here.depth = 1;
      else
        ++here.depth;
      return;
    case ')':
      if ((here.kind == Kind::substitution || here.kind == Kind::arithmetic) && here.depth-- == 0)
        stack_.pop_back();
      return;
    case '\n':
      if (!quoted) {
        line_.pop_back();
        end_of_line();
      }
      return;
    case '#':
      if (!quoted && here.kind != Kind::braces && word_start) stack_.push_back({Kind::comment});
      return;
    case '|':  // the second one of `||` takes the first one back
      if (!quoted && here.kind != Kind::braces && !follows(">|")) pipes_ += follows("||") ? -1 : 1;
      return;
    case '<':
      if (!quoted && follows("<<") && !follows("<<<")) {
        pending_.push_back({{}, false, false});
        here_word_ = WordOf::before;
        here_quote_ = 0;
      }
      return;
    default: return;
  }
}

void ShellLine::end_of_line() {
  line_ += '\n';
  line_start_ = line_.size();
  if (!pending_.empty()) stack_.push_back({Kind::here_document});
}

void ShellLine::read_here_document_word(char c) {
  HereDocument& document = pending_.back();
  if (here_word_ == WordOf::before) {
    if (c == '<') {  // `<<<`, which some shells have
      pending_.pop_back();
      here_word_ = WordOf::none;
      line_ += c;
      return;
    }
    if (c == '-' && follows("<<"))
      document.strip_tabs = true;
    else if (c != ' ' && c != '\t')
      here_word_ = WordOf::within;
    if (here_word_ == WordOf::before) {
      line_ += c;
      return;
    }
  }
  if (here_quote_) {
    if (c == here_quote_)
      here_quote_ = 0;
    else
      document.end += c;
    line_ += c;
  } else if (c == '\'' || c == '"') {
    here_quote_ = c;
    document.quoted = true;
    line_ += c;
  } else if (c == '\\') {
    escaped_ = true;
    line_ += c;
  } else if (std::string_view(" \t\n;&|()<>`").find(c) != std::string_view::npos) {
    here_word_ = WordOf::none;
    next(c);
  } else {
    document.end += c;
    line_ += c;
  }
}

void ShellLine::add_value(std::string_view value) {
  const Context& here = stack_.back();
  std::string text;
  if (here_word_ != WordOf::none)
    throw core::InputError("A value cannot be the end mark of a here-document (`<<`).");
  if (escaped_) {  // the author's backslash would take the first byte of the value
    line_.pop_back();
    escaped_ = false;
  }
  switch (here.kind) {
    case Kind::single_quotes:
      for (char c : value) text += c == '\'' ? "'\\''" : std::string(1, c);
      break;
    case Kind::double_quotes: text = escape(value, "\\\"$`"); break;
    case Kind::comment:
      text = value;
      std::replace(text.begin(), text.end(), '\n', ' ');
      break;
    case Kind::here_document: {
      const HereDocument& document = pending_.front();
      if (!document.quoted) {
        // What would end the document must not be written into it, so it comes from a variable.
        std::string name = "pipe_value_" + std::to_string(++values_);
        assignments_ += name + "=" + core::shell_quote(value) + "; ";
        text = "${" + name + "}";
        break;
      }
      for (std::size_t from = 0; from <= value.size();) {
        auto to = std::min(value.find('\n', from), value.size());
        if (value.substr(from, to - from).find(document.end) != value.npos)
          throw core::InputError("A value within the here-document `<<'" + document.end +
                                     "'` contains `" + document.end + "`, which would end it.",
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
      text = here.in_double_quotes ? escape(value, "\\\"$`}")
             : value.empty()       ? "''"
                                   : core::shell_quote(value);
      break;
    case Kind::word:
    case Kind::substitution:
    case Kind::backquotes: text = core::shell_quote(value); break;
  }
  // Backquotes take one level of backslashes before the shell reads what is between them.
  for (const Context& context : stack_)
    if (context.kind == Kind::backquotes) text = escape(text, "\\`");
  line_ += text;
}

}  // namespace pipeline::orchestrators
