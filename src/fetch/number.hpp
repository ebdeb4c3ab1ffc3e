/// @file
/// Numbers in texts of servers and of files.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipeline::fetch {

/// Parses a text that consists of a number; returns nothing for any other text.
inline std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || rest != end || error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace pipeline::fetch
