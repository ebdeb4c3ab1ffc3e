/// @file
/// Small operations on ASCII text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_alnum(char c) { return is_digit(c) || is_lower(c) || is_upper(c); }
/// Returns true for `0` to `9` and `a` to `f`, the digits in which digests are written.
constexpr bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

/// Returns true if the predicate accepts each character; true for an empty text.
template <class Predicate>
constexpr bool all(std::string_view text, Predicate accepts) {
  return std::all_of(text.begin(), text.end(), accepts);
}

/// Returns the text without leading and trailing blanks.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Returns the text with ASCII letters in lower case.
inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// Appends the bytes, or as many of them as fit into a text of `max_size` bytes.
inline void append_bounded(std::string& text, std::string_view bytes, std::size_t max_size) {
  text += bytes.substr(0, max_size - std::min(max_size, text.size()));
}

/// Returns the text with each occurrence of `what`, which is not empty, replaced.
inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Returns the count and the noun, with an `s` unless the count is 1: `1 step`, `2 steps`.
inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// Returns the parts between separators, empty ones included: one more than there are separators.
/// The parts are views of the text, which must outlive them.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0;;) {
    const auto end = text.find(separator, start);
    parts.push_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

/// Returns the lines without their line ends; a last line without a line end counts. The lines are
/// views of the text, which must outlive them.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

/// Returns the words between blanks; there are no empty ones.
inline std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (auto begin = text.find_first_not_of(blanks); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(blanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(blanks, end);
  }
  return words;
}

}  // namespace pipeline::core
