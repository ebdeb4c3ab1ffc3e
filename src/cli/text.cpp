#include "cli/text.hpp"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <vector>

#include "core/utf8.hpp"

namespace pipeline::cli {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

/// Returns the length of the escape sequence at the beginning of `text`, and whether the sequence
/// sets a colour. Knows the sequences of ECMA-48: CSI, strings such as OSC, and short ones.
std::pair<std::size_t, bool> escape_sequence(std::string_view text) {
  if (text.size() < 2) return {text.size(), false};
  const char kind = text[1];
  std::size_t at = 2;
  if (kind == '[') {
    while (at < text.size() && text[at] >= 0x20 && text[at] < 0x40) ++at;
    if (at == text.size()) return {at, false};
    const bool plain =
        std::all_of(text.begin() + 2, text.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char c) { return (c >= '0' && c <= '9') || c == ';' || c == ':'; });
    return {at + 1, text[at] == 'm' && plain};
  }
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') {
    for (; at < text.size(); ++at) {
      if (text[at] == '\a') return {at + 1, false};
      if (text[at] == '\x1b') return {std::min(at + 2, text.size()), false};
    }
    return {at, false};
  }
  while (at < text.size() && text[at - 1] >= 0x20 && text[at - 1] < 0x30) ++at;
  return {at, false};
}

/// Returns true for colours that can be read on dark and light backgrounds.
bool is_legible(int red, int green, int blue) {
  constexpr int darkest = 30, lightest = 215;
  const int brightness = (2 * red + 5 * green + blue) / 8;
  return brightness >= darkest && brightness <= lightest;
}

/// @param number in the table of 256 colours
bool is_legible(int number) {
  if (number < 16) return number % 8 != 0 && number % 8 != 7;
  if (number >= 232) return number >= 239 && number <= 250;
  const auto level = [&](int place) { return (number - 16) / place % 6 * 51; };
  return is_legible(level(36), level(6), level(1));
}

/// Returns true for an SGR code of one number that cannot hide text: emphasis and its end, and the
/// colours of the foreground but black and white.
bool is_harmless(int code) {
  const bool is_emphasis = code <= 4 || code == 7 || (code >= 22 && code <= 24) || code == 27;
  const bool is_colour = code == 39 || (code >= 31 && code <= 36) || (code >= 90 && code <= 96);
  return is_emphasis || is_colour;
}

/// Returns the codes of a colour sequence (SGR) that cannot hide text: without concealment,
/// backgrounds, fonts, and black and white.
std::string legible_codes(std::string_view codes) {
  std::vector<int> numbers{0};
  for (const char c : codes) {
    if (c == ':') return {};
    if (c == ';')
      numbers.push_back(0);
    else
      numbers.back() = std::min(numbers.back() * 10 + (c - '0'), 1000);
  }
  std::string kept;
  const auto keep = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i)
      kept += (kept.empty() ? "" : ";") + std::to_string(numbers[i]);
  };
  const auto at = [&](std::size_t i) { return i < numbers.size() ? numbers[i] : -1; };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const int code = numbers[i];
    if (code == 38 || code == 48) {
      const std::size_t count = at(i + 1) == 5 ? 3 : at(i + 1) == 2 ? 5 : numbers.size();
      if (i + count > numbers.size()) break;
      const bool is_seen =
          count == 3 ? is_legible(at(i + 2)) : is_legible(at(i + 2), at(i + 3), at(i + 4));
      if (code == 38 && is_seen) keep(i, count);
      i += count - 1;
    } else if (is_harmless(code)) {
      keep(i, 1);
    }
  }
  return kept;
}

/// Invisible characters that change how their neighbours are read: direction overrides and
/// isolates, line and paragraph separators.
bool is_deceptive(char32_t c) {
  return (c >= 0x80 && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x200e || c == 0x200f || c == 0x2028 || c == 0x2029 || c == 0xfeff;
}

unsigned columns(char32_t c) {
  if (c < 0x7f) return 1;
  static const bool utf8 = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  const int width = utf8 ? ::wcwidth(static_cast<wchar_t>(c)) : 1;
  return width < 0 ? 1 : static_cast<unsigned>(width);
}

}  // namespace

std::string for_terminal(std::string_view line, bool keep_colours) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (const auto overwritten = line.rfind('\r'); overwritten != line.npos)
    line.remove_prefix(overwritten + 1);
  std::string safe;
  safe.reserve(line.size());
  bool coloured = false;
  while (!line.empty()) {
    std::size_t taken = 1;
    const char c = line[0];
    if (c == '\x1b') {
      const auto [length, is_colour] = escape_sequence(line);
      taken = length;
      const auto codes =
          is_colour && keep_colours ? legible_codes(line.substr(2, length - 3)) : std::string();
      if (!codes.empty()) {
        safe += "\x1b[" + codes + "m";
        coloured = true;
      }
    } else if (c == '\t') {
      safe.append(8 - display_width(safe) % 8, ' ');
    } else if (const auto point = core::decode_utf8(line); !point.valid) {
      safe += replacement;
    } else if (taken = point.length;
               point.value >= 0x20 && point.value != 0x7f && !is_deceptive(point.value)) {
      safe += line.substr(0, taken);
    }
    line.remove_prefix(taken);
  }
  if (coloured) safe += "\x1b[0m";
  return safe;
}

std::string lines_for_terminal(std::string_view text, bool keep_colours) {
  const auto is_plain = [](char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\n'; };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string safe;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string line(text.substr(0, end));
    std::erase(line, '\r');
    for (const auto part : core::split(line, '\t')) {
      if (part.data() != line.data()) safe += '\t';
      safe += for_terminal(part, keep_colours);
    }
    if (end == text.npos) break;
    safe += '\n';
    text.remove_prefix(end + 1);
  }
  return safe;
}

unsigned display_width(std::string_view text) {
  unsigned width = 0;
  while (!text.empty()) {
    std::size_t taken = 1;
    if (text[0] == '\x1b') {
      taken = escape_sequence(text).first;
    } else {
      const auto point = core::decode_utf8(text);
      taken = point.length;
      width += point.valid ? columns(point.value) : 1;
    }
    text.remove_prefix(taken);
  }
  return width;
}

std::string clip(std::string_view text, unsigned width) {
  const std::string plain = for_terminal(text);
  if (display_width(plain) <= width) return plain;
  if (width == 0) return {};
  std::string clipped;
  unsigned used = 0;
  for (std::string_view rest = plain; !rest.empty();) {
    const auto point = core::decode_utf8(rest);
    const unsigned next = point.valid ? columns(point.value) : 1;
    if (used + next > width - 1) break;
    used += next;
    clipped += rest.substr(0, point.length);
    rest.remove_prefix(point.length);
  }
  return clipped + "…";
}

std::string shorten_digests(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && core::is_hex_digit(text[end])) ++end;
    const std::size_t length = end - i;
    result += text.substr(i, length == 40 || length == 64 ? 12 : length);
    if (end < text.size()) result += text[end++];
    i = end;
  }
  return result;
}

std::string Paint::operator()(Colour colour, std::string_view text) const {
  if (!on || colour == Colour::none || text.empty()) return std::string(text);
  const char* code = "";
  switch (colour) {
    case Colour::none: break;
    case Colour::bold: code = "1"; break;
    case Colour::dim: code = "2"; break;
    case Colour::red: code = "31"; break;
    case Colour::green: code = "32"; break;
    case Colour::yellow: code = "33"; break;
    case Colour::blue: code = "34"; break;
    case Colour::cyan: code = "36"; break;
  }
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

std::string Table::render(const Paint& paint) const {
  std::vector<unsigned> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i].text));
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    // Spaces that are written before the next non-empty cell, so that no line ends in spaces.
    unsigned missing = 0;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const auto& cell = rows_[r][i];
      if (!cell.text.empty()) {
        line.append(missing, ' ');
        line += paint(r == 0 ? Colour::dim : cell.colour, cell.text);
        missing = 0;
      }
      missing += widths[i] - display_width(cell.text) + 2;
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace pipeline::cli
