#include "core/shell_lexer.hpp"

#include <algorithm>

namespace pipeline::core {

void ShellLexer::next(char c) {
  if (escaped_) {
    escaped_ = false;
    text_ += c;
    in_word_ |= c != '\n';
    if (delimiter_state_ == DelimiterState::within) {
      pending_.back().delimiter += c;
      pending_.back().quoted = true;
    }
    return;
  }
  if (delimiter_state_ != DelimiterState::none) return read_delimiter(c);
  Context& context = stack_.back();
  switch (context.kind) {
    case Kind::single_quotes:
      if (c == '\'') stack_.pop_back();
      text_ += c;
      return;
    case Kind::comment:
      if (c == '\n') {
        stack_.pop_back();
        end_line();
      } else {
        text_ += c;
      }
      return;
    case Kind::here_document: {
      text_ += c;
      if (c != '\n') return;
      std::string_view last(text_.data() + line_start_, text_.size() - line_start_ - 1);
      if (pending_.front().strip_tabs)
        last.remove_prefix(std::min(last.find_first_not_of('\t'), last.size()));
      line_start_ = text_.size();
      if (last != pending_.front().delimiter) return;
      pending_.erase(pending_.begin());
      if (pending_.empty()) stack_.pop_back();
      return;
    }
    case Kind::double_quotes:
    case Kind::arithmetic:
      if (context.kind == Kind::double_quotes && c == '"') {
        stack_.pop_back();
        text_ += c;
        return;
      }
      break;
    case Kind::braces:
      if (c == '}') {
        close_expansion();
        text_ += c;
        return;
      }
      break;
    case Kind::backquotes:
      if (c == '`') {
        close_expansion();
        text_ += c;
        return;
      }
      break;
    case Kind::word:
    case Kind::substitution: break;
  }
  unquoted(c);
}

void ShellLexer::unquoted(char c) {
  Context& context = stack_.back();
  bool quoted = context.kind == Kind::double_quotes || context.kind == Kind::arithmetic ||
                context.in_double_quotes;
  bool expansion = follows("$") && !follows("\\$") && !follows("$$");
  text_ += c;
  if (c == '\\') {
    escaped_ = true;
    return;
  }
  const bool word_start = !in_word_;
  in_word_ = quoted || context.kind == Kind::braces ||
             std::string_view(" \t\n;&|()<>`").find(c) == std::string_view::npos;
  switch (c) {
    case '\'':
      if (!quoted) stack_.push_back({Kind::single_quotes});
      return;
    case '"':
      // Within "${X:-...}" a double quote toggles; opening a pair has the same effect.
      if (context.kind != Kind::arithmetic) stack_.push_back({Kind::double_quotes});
      return;
    case '`': stack_.push_back({Kind::backquotes}); return;
    case '{':
      if (expansion) stack_.push_back({Kind::braces, quoted});
      return;
    case '(':
      if (expansion) {
        stack_.push_back({Kind::substitution});
        return;
      }
      if (context.kind == Kind::substitution && context.depth == 0 && follows("$(("))
        context.kind = Kind::arithmetic;
      ++context.depth;
      return;
    case ')':
      if ((context.kind == Kind::substitution || context.kind == Kind::arithmetic) &&
          context.depth-- == 0)
        close_expansion();
      return;
    case '\n':
      if (!quoted) {
        text_.pop_back();
        end_line();
      }
      return;
    case '#':
      if (!quoted && context.kind != Kind::braces && word_start) stack_.push_back({Kind::comment});
      return;
    case '|':  // The second `|` of `||` cancels the first one's count.
      if (!quoted && context.kind != Kind::braces && !follows(">|"))
        pipes_ += follows("||") ? -1 : 1;
      return;
    case '<':
      if (!quoted && follows("<<") && !follows("<<<")) {
        pending_.push_back({{}, false, false});
        delimiter_state_ = DelimiterState::before;
        delimiter_quote_ = 0;
      }
      return;
    default: return;
  }
}

/// Ends an expansion, which is a part of a word.
void ShellLexer::close_expansion() {
  stack_.pop_back();
  in_word_ = true;
}

void ShellLexer::end_line() {
  text_ += '\n';
  in_word_ = false;
  line_start_ = text_.size();
  if (!pending_.empty()) stack_.push_back({Kind::here_document});
}

void ShellLexer::read_delimiter(char c) {
  HereDocument& document = pending_.back();
  if (delimiter_state_ == DelimiterState::before) {
    if (c == '<') {  // `<<<`, which some shells support.
      pending_.pop_back();
      delimiter_state_ = DelimiterState::none;
      text_ += c;
      return;
    }
    if (c == '-' && follows("<<"))
      document.strip_tabs = true;
    else if (c != ' ' && c != '\t')
      delimiter_state_ = DelimiterState::within;
    if (delimiter_state_ == DelimiterState::before) {
      text_ += c;
      return;
    }
  }
  if (delimiter_quote_) {
    if (c == delimiter_quote_)
      delimiter_quote_ = 0;
    else
      document.delimiter += c;
    text_ += c;
  } else if (c == '\'' || c == '"') {
    delimiter_quote_ = c;
    document.quoted = true;
    text_ += c;
  } else if (c == '\\') {
    escaped_ = true;
    text_ += c;
  } else if (std::string_view(" \t\n;&|()<>`").find(c) != std::string_view::npos) {
    delimiter_state_ = DelimiterState::none;
    next(c);
  } else {
    document.delimiter += c;
    text_ += c;
  }
}

}  // namespace pipeline::core
