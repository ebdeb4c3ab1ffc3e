#include "yaml/errors.hpp"

#include <algorithm>
#include <array>

#include <yaml-cpp/exceptions.h>

#include "core/utf8.hpp"

namespace pipeline::yaml {
namespace {

core::Span span_at(std::string_view text, std::size_t position) {
  position = std::min(position, text.size());
  const std::string_view before = text.substr(0, position);
  const auto line = static_cast<unsigned>(std::count(before.begin(), before.end(), '\n') + 1);
  const auto start = before.rfind('\n');
  return {line,
          static_cast<unsigned>(start == std::string_view::npos ? position + 1 : position - start),
          1};
}

std::size_t line_start(std::string_view text, unsigned line) {
  std::size_t start = 0;
  while (--line > 0) {
    const auto end = text.find('\n', start);
    if (end == std::string_view::npos) return text.size();
    start = end + 1;
  }
  return start;
}

std::string_view line_of(std::string_view text, unsigned line) {
  const auto start = line_start(text, line);
  return text.substr(start, text.find('\n', start) - start);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Finds a tab in the indentation of any line up to `last_line`. YAML forbids tabs there, and
/// yaml-cpp reports such a line as something else.
std::optional<core::Span> find_tab(std::string_view text, unsigned last_line) {
  const std::size_t end =
      std::min(text.size(), line_start(text, last_line) + line_of(text, last_line).size());
  unsigned line = 1;
  for (std::size_t start = 0; start < end; ++line) {
    std::size_t i = start;
    while (i < end && text[i] == ' ') ++i;
    if (i < end && text[i] == '\t')
      return core::Span{line, static_cast<unsigned>(i - start + 1), 1};
    const auto next = text.find('\n', i);
    if (next == std::string_view::npos) break;
    start = next + 1;
  }
  return std::nullopt;
}

/// Returns the last line before `line` that is neither blank nor a comment, if it looks like a key
/// without its colon.
std::optional<core::Span> find_incomplete_line(std::string_view text, unsigned line) {
  while (--line > 0) {
    std::string_view before = line_of(text, line);
    before = before.substr(0, before.find_last_not_of(" \r") + 1);
    const auto first = before.find_first_not_of(' ');
    if (first == std::string_view::npos || before[first] == '#') continue;
    before.remove_prefix(first);
    if (before.find_first_of(":-[]{}\"' ") != std::string_view::npos) return std::nullopt;
    return core::Span{line, static_cast<unsigned>(first + 1), core::span_length(before.size())};
  }
  return std::nullopt;
}

/// Counts the open brackets of a line, except in quotes. Brackets in a quote that began on an
/// earlier line count, too.
class OpenBrackets {
 public:
  int count() const { return open_; }

  void read(char c) {
    if (quote_ != 0) {
      if (c == quote_ && !is_escaped_) quote_ = 0;
      is_escaped_ = c == '\\' && quote_ == '"' && !is_escaped_;
    } else if ((c == '"' || c == '\'') && begins_value_) {
      quote_ = c;
    } else {
      open_ += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
    if (c != ' ') begins_value_ = std::string_view("[{,:-?").find(c) != std::string_view::npos;
  }

 private:
  int open_ = 0;
  char quote_ = 0;
  bool is_escaped_ = false;
  bool begins_value_ = true;
};

/// Returns true if the character at the column is a bracket within a text, such as the `[` of
/// `train[*].score`.
bool is_bracket_in_text(std::string_view line, unsigned column) {
  return column > 1 && column <= line.size() && contains("[{", line.substr(column - 1, 1)) &&
         !contains(" [{,:", line.substr(column - 2, 1));
}

core::Diagnostic invalid(std::string message, core::Span span,
                         std::vector<std::string> notes = {}) {
  return {"invalid-yaml", std::move(message), span, std::move(notes), {}};
}

/// @param before the line up to the colon
core::Diagnostic explain_colon(std::string_view text, std::string_view before,
                               const core::Span& place) {
  if (contains(before, ": "))
    return invalid("a `:` within a value: put the value in quotes", place,
                   {"as in `key: \"a: b\"`"});
  if (const auto incomplete = find_incomplete_line(text, place.line))
    return invalid("this line is not a key: it lacks the colon at its end", *incomplete);
  return invalid("this `:` follows nothing that could be a key here", place,
                 {"is the line above complete (`key:`, with a space or a line end after the "
                  "colon), and this line indented like its siblings?"});
}

core::Diagnostic explain_end_of_map(std::string_view source_line, const core::Span& place) {
  const auto first = source_line.find_first_not_of(' ');
  if (first != std::string_view::npos && first + 1 == place.column &&
      source_line.substr(first).starts_with("- "))
    return invalid("a list item among the keys of a map", place,
                   {"indent the list deeper than its key, or give it a key"});
  if (first != std::string_view::npos && first + 1 == place.column)
    return invalid("this line is indented neither like the keys above nor like those around them",
                   place);
  return invalid("nothing may follow a value that ended with a quote or a bracket", place,
                 {"put the whole value in quotes"});
}

}  // namespace

std::optional<core::Diagnostic> find_unreadable(std::string_view text) {
  // yaml-cpp keeps the tokens of a line until it knows whether they are a key, so limits on the
  // line bound its memory.
  constexpr std::size_t max_line = 1u << 20;
  constexpr int max_open_brackets = 1000;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return core::Diagnostic{
        "not-utf8", "the file is in UTF-16", {1, 1, 1}, {"save it as UTF-8"}, {}};
  std::size_t line_begin = 0;
  OpenBrackets brackets;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      line_begin = ++i;
      brackets = OpenBrackets();
      continue;
    }
    brackets.read(c);
    if (brackets.count() > max_open_brackets)
      return core::Diagnostic{"too-deep",
                              "more than 1000 brackets are opened in this line and not closed",
                              span_at(text, i),
                              {},
                              {}};
    if (i - line_begin > max_line)
      return core::Diagnostic{"too-large",
                              "this line is longer than 1 MiB",
                              span_at(text, line_begin),
                              {"a list or map can go over many lines, in JSON as well: `jq . FILE`",
                               "a long text is better a file: `inputs: {text: ./FILE}`"},
                              {}};
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\r' && c != '\t') || c == 0x7f) {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      return core::Diagnostic{"control-character",
                              std::string("the control character 0x") + digits[byte >> 4] +
                                  digits[byte & 15] + " is not allowed in YAML",
                              span_at(text, i),
                              {},
                              {}};
    }
    if (static_cast<unsigned char>(c) < 0x80) {
      ++i;
      continue;
    }
    const auto character = core::decode_utf8(text.substr(i));
    if (!character.valid)
      return core::Diagnostic{"not-utf8",
                              "these bytes are not valid UTF-8",
                              span_at(text, i),
                              {"save the file as UTF-8"},
                              {}};
    i += character.length;
  }
  return std::nullopt;
}

core::Diagnostic explain_yaml_error(const std::string& message, unsigned line, unsigned column,
                                    std::string_view text, std::size_t last_node) {
  namespace msg = YAML::ErrorMsg;
  const core::Span place{line, column, 1};
  const std::string_view source_line = line_of(text, line);
  if (const auto tab = find_tab(text, line))
    return invalid("a tab is used for indentation; YAML allows only spaces", *tab);

  const std::string_view before =
      source_line.substr(0, std::min<std::size_t>(column - 1, source_line.size()));
  if (before.ends_with('$') && contains(message, "flow"))
    return invalid("a text with `${...}` needs quotes within `[ ]` or `{ }`", {line, column - 1, 1},
                   {"as in [python, train.py, \"${inputs.data}\"]"});
  if (message == msg::END_OF_SEQ_FLOW || message == msg::END_OF_MAP_FLOW) {
    if (is_bracket_in_text(source_line, column))
      return invalid("a text with `" + std::string(1, source_line[column - 1]) +
                         "` needs quotes within `[ ]` or `{ }`",
                     place, {"as in {scores: \"train[*].score\"}"});
    const bool list = message == msg::END_OF_SEQ_FLOW;
    return invalid(std::string("a ") + (list ? "list" : "map") + " that begins with `" +
                       (list ? "[" : "{") + "` is not closed with `" + (list ? "]" : "}") +
                       "` before this",
                   place,
                   {"the last value that could be read is in line " +
                    std::to_string(span_at(text, last_node).line)});
  }
  if (message == msg::FLOW_END)
    return invalid("this bracket does not close the bracket that was opened last", place);
  if (message == msg::MAP_VALUE) return explain_colon(text, before, place);
  if (message == msg::END_OF_MAP) return explain_end_of_map(source_line, place);
  if (message == msg::END_OF_SEQ)
    return invalid(
        "this is not an item of the list above: items begin with `- `, all with the same "
        "indentation",
        place);
  if (message == msg::BLOCK_ENTRY)
    return invalid("a list item (`- `) cannot begin here", place,
                   {"put it on its own line below the key, or write `[a, b]`"});
  if (message == msg::UNKNOWN_TOKEN) {
    const std::string character =
        column <= source_line.size() ? std::string(1, source_line[column - 1]) : std::string("?");
    return invalid("a text cannot begin with `" + character + "`: put it in quotes", place);
  }
  // Versions from yaml-cpp 0.8 on append the anchor's name.
  if (message.starts_with(msg::UNKNOWN_ANCHOR))
    return invalid("this alias refers to an anchor that does not exist", place,
                   {"a text that begins with `*` needs quotes"});
  if (message.starts_with(msg::INVALID_ESCAPE))
    return invalid("unknown escape `\\" +
                       message.substr(std::string_view(msg::INVALID_ESCAPE).size()) +
                       "` in a text in double quotes",
                   place, {"in single quotes a backslash is just a backslash"});
  if (message == msg::YAML_MAJOR_VERSION || message.starts_with(msg::YAML_VERSION))
    return invalid("only YAML 1.x is supported", place);
  return invalid(message, place);
}

}  // namespace pipeline::yaml
