/// @file
/// Texts that people read: counted nouns, and lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

/// Returns `1 step`, `2 steps`.
inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// Returns lines without their line ends; a last line without a line end counts.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace pipeline::core
