/// @file
/// Small operations on ASCII text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

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

/// Splits the text at blanks.
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
