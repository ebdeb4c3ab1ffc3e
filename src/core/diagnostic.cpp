#include "core/diagnostic.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "core/address.hpp"
#include "core/project.hpp"
#include "core/text.hpp"
#include "core/utf8.hpp"

namespace pipeline::core {

namespace {

constexpr unsigned tab_width = 4;
/// Maximum number of columns shown of a source line; a longer line is cut around the span.
constexpr std::size_t shown_columns = 120, columns_before = 40;

/// Returns true for characters that a terminal interprets instead of showing, or that reorder the
/// shown text ("Trojan Source", CVE-2021-42574).
bool is_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/// Returns the number of columns that a terminal uses for a character: two for East Asian wide
/// characters and most emoji, none for combining marks.
unsigned width(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range none[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},
                                   {0x610, 0x61a},   {0x64b, 0x65f},   {0x1ab0, 0x1aff},
                                   {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20f0},
                                   {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
  static constexpr Range wide[] = {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},
                                   {0x2614, 0x2615},   {0x26a1, 0x26a1},   {0x2705, 0x2705},
                                   {0x2728, 0x2728},   {0x274c, 0x274c},   {0x2e80, 0x303e},
                                   {0x3041, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
                                   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
                                   {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};
  const auto among = [c](const auto& ranges) {
    return std::any_of(std::begin(ranges), std::end(ranges),
                       [c](Range r) { return c >= r.first && c <= r.last; });
  };
  return among(none) ? 0 : among(wide) ? 2 : 1;
}

std::string escape(CodePoint c) {
  if (c.valid && c.value == '\n') return "\\n";
  if (c.valid && c.value == '\t') return "\\t";
  if (c.valid && c.value == '\r') return "\\r";
  char text[16];
  std::snprintf(text, sizeof text, c.valid && c.value >= 0x80 ? "\\u%04x" : "\\x%02x",
                static_cast<unsigned>(c.value));
  return text;
}

/// One character of a source line as it is shown.
struct Cell {
  std::string text;
  std::size_t column;  ///< The column, from 0, in a line that is shown from its beginning.
  std::size_t width;
  std::size_t byte;  ///< Byte offset in the line, from 0.
};

/// Returns the characters of a line with the columns at which a terminal shows them.
std::vector<Cell> lay_out(std::string_view line) {
  std::vector<Cell> cells;
  std::size_t column = 0;
  for (std::size_t byte = 0; byte < line.size();) {
    const auto c = decode_utf8(line.substr(byte));
    Cell cell{std::string(line.substr(byte, c.length)), column, 1, byte};
    if (c.valid && c.value == '\t') {
      cell.width = tab_width - column % tab_width;
      cell.text.assign(cell.width, ' ');
    } else if (!c.valid || is_hidden(c.value)) {
      cell.text = escape(c);
      cell.width = cell.text.size();
    } else {
      cell.width = width(c.value);
    }
    column += cell.width;
    byte += c.length;
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::string_view line_of(std::string_view source, unsigned number) {
  for (unsigned line = 1; line < number; ++line) {
    const auto end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  auto line = source.substr(0, source.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return number == 1 ? without_byte_order_mark(line) : line;
}

/// Returns the line and, under the span, a caret with tildes.
std::string line_with_caret(std::string_view line, const Span& span) {
  // Characters far behind the span are never shown, so a line of megabytes costs no more than a
  // short one. Eight bytes for each shown column suffice: a character has at most four.
  const std::size_t begin_byte =
      std::min<std::size_t>(span.column > 0 ? span.column - 1 : 0, line.size());
  const std::size_t end_byte =
      std::min(begin_byte + std::max<std::size_t>(span.length, 1), line.size());
  const auto cells = lay_out(line.substr(0, std::min(line.size(), begin_byte + 8 * shown_columns)));
  const auto column_of = [&](std::size_t byte) {
    const auto cell =
        std::find_if(cells.begin(), cells.end(), [&](const Cell& c) { return c.byte >= byte; });
    if (cell != cells.end()) return cell->column;
    return cells.empty() ? 0 : cells.back().column + cells.back().width;
  };
  const auto begin = column_of(begin_byte), end = std::max(column_of(end_byte), begin + 1);
  const auto total = cells.empty() ? 0 : cells.back().column + cells.back().width;
  const auto first =
      begin > shown_columns - columns_before && total > shown_columns ? begin - columns_before : 0;
  std::string text = first > 0 ? "    ..." : "    ";
  const auto indent = text.size();
  std::size_t shown_from = first, shown_to = first;
  bool started = false, cut = !cells.empty() && cells.back().byte + 8 < line.size() &&
                              line.size() > begin_byte + 8 * shown_columns;
  for (const auto& cell : cells) {
    if (cell.column < first) continue;
    if (cell.column + cell.width > first + shown_columns) {
      cut = true;
      break;
    }
    if (!started) shown_from = cell.column;
    started = true;
    text += cell.text;
    shown_to = cell.column + cell.width;
  }
  if (cut) {
    text += "...";
  } else {
    while (text.size() > indent && text.back() == ' ') text.pop_back();
  }
  text += '\n';
  const auto mark = begin > shown_from ? begin - shown_from : 0;
  const auto last = std::max(std::min(end, shown_to), begin + 1);
  return text + std::string(indent + mark, ' ') + '^' + std::string(last - begin - 1, '~');
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] =
          std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = current;
  }
  return last[b.size()];
}

/// Returns the number of characters that both begin with.
std::size_t common_begin(std::string_view a, std::string_view b) {
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return static_cast<std::size_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

/// Returns the word without the differences that users often confuse: case, `-` and `_`.
std::string folded(std::string_view word) {
  auto result = lower(word);
  std::ranges::replace(result, '-', '_');
  return result;
}

const SourceText& source_of(const Diagnostic& diagnostic, const std::vector<SourceText>& sources) {
  return sources[diagnostic.span.file < sources.size() ? diagnostic.span.file : 0];
}

std::string render_all(const std::vector<Diagnostic>& diagnostics,
                       const std::vector<SourceText>& sources) {
  std::string text;
  for (const auto& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    const auto& source = source_of(diagnostic, sources);
    text += render(diagnostic, source.file, source.text);
  }
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = decode_utf8(text.substr(i));
    if (!c.valid || is_hidden(c.value)) {
      result += escape(c);
    } else {
      result += text.substr(i, c.length);
    }
    i += c.length;
  }
  return result;
}

std::string render(const Diagnostic& diagnostic, std::string_view file, std::string_view source) {
  std::string text;
  if (!file.empty()) text += printable(file) + ':';
  if (!file.empty() && diagnostic.span.line > 0) {  // Without a file, a position means nothing.
    text += std::to_string(diagnostic.span.line) + ':';
    if (diagnostic.span.column > 0) text += std::to_string(diagnostic.span.column) + ':';
  }
  if (!text.empty()) text += ' ';
  text += (diagnostic.severity == Severity::error ? "error: " : "warning: ") +
          printable(masked_addresses(diagnostic.message));
  if (diagnostic.span.line > 0 && !source.empty())
    text +=
        '\n' + line_with_caret(masked_addresses(std::string(line_of(source, diagnostic.span.line))),
                               diagnostic.span);
  for (const auto& note : diagnostic.notes)
    text += "\n  note: " + printable(masked_addresses(note));
  if (!diagnostic.suggestion.empty())
    text += "\n  " + printable(masked_addresses(diagnostic.suggestion));
  return text;
}

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  // Longer words are not typing mistakes, and the work grows with the square of the length.
  constexpr std::size_t longest = 256;
  if (word.size() > longest) return std::nullopt;
  const auto wanted = folded(word);
  const std::string* best = nullptr;
  std::size_t best_distance = word.size() / 3 + 1, best_begin = 0;
  for (const auto& candidate : candidates) {
    if (candidate.size() > wanted.size() + best_distance ||
        wanted.size() > candidate.size() + best_distance)
      continue;
    const auto other = folded(candidate);
    const auto d = distance(wanted, other);
    const auto begin = common_begin(wanted, other);
    if (d < best_distance || (best && d == best_distance && begin > best_begin)) {
      best = &candidate;
      best_distance = d;
      best_begin = begin;
    }
  }
  if (!best && word.size() >= 3) {
    const auto begins = [&](const std::string& candidate) {
      return folded(candidate).starts_with(wanted);
    };
    const auto found = std::find_if(candidates.begin(), candidates.end(), begins);
    if (found != candidates.end() && std::none_of(found + 1, candidates.end(), begins))
      best = &*found;
  }
  return best ? std::optional(*best) : std::nullopt;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto found = closest(word, candidates);
  return found ? "did you mean '" + *found + "'?" : std::string();
}

InputError::InputError(std::vector<Diagnostic> diagnostics, std::vector<SourceText> sources)
    : diagnostics_(std::move(diagnostics)), sources_(std::move(sources)) {
  // A pipeline of somebody else may include any file of the user, or have a link to such a file,
  // whose content must not be shown.
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!is_outside_project(sources_[i].file) || (i == 0 && !is_in_project(sources_[i].file)))
      continue;
    sources_[i].text.clear();
    for (auto& each : diagnostics_)
      if (each.span.file == i && each.span.line > 0)
        each = {each.code, "the file is outside of the project: what is wrong there is not shown",
                each.span, {},
                {},        each.severity};
  }
  rendered_ = render_all(diagnostics_, sources_);
}

InputError::InputError(std::vector<Diagnostic> diagnostics, std::string file, std::string source)
    : InputError(std::move(diagnostics),
                 std::vector{SourceText{std::move(file), std::move(source)}}) {}

const std::string& InputError::file_of(const Diagnostic& diagnostic) const {
  return source_of(diagnostic, sources_).file;
}

InputError::InputError(std::string message, std::string suggestion)
    : InputError({Diagnostic{"input", std::move(message), {}, {}, std::move(suggestion)}},
                 std::string(), std::string()) {}

}  // namespace pipeline::core
