/// @file
/// The pause that a busy server asks for.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>

#include "net/http.hpp"

namespace pipeline::net {

/// Returns the header Retry-After, a minute at most; nothing without one, or for a date.
inline std::optional<std::chrono::seconds> wanted_pause(const Response& response) {
  constexpr std::uint64_t max_seconds = 60;
  const auto text = response.header("retry-after");
  std::uint64_t seconds = 0;
  const auto end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (text.empty() || rest != end || error != std::errc()) return std::nullopt;
  return std::chrono::seconds(std::min(seconds, max_seconds));
}

}  // namespace pipeline::net
