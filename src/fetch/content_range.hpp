/// @file
/// The range of a response with status 206.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fetch/number.hpp"

namespace pipeline::fetch {

struct ContentRange {
  /// Bytes. `end` is one past the last byte, `total` is the size of the whole content.
  std::uint64_t begin, end, total;
};

/// Parses the header Content-Range, `bytes 0-9/100`. Returns nothing for any other text.
inline std::optional<ContentRange> range_in(std::string_view text) {
  constexpr std::string_view unit = "bytes ";
  const auto dash = text.find('-'), slash = text.find('/');
  if (!text.starts_with(unit) || dash == text.npos || slash == text.npos || slash < dash)
    return std::nullopt;
  const auto begin = number_in(text.substr(unit.size(), dash - unit.size())),
             last = number_in(text.substr(dash + 1, slash - dash - 1)),
             total = number_in(text.substr(slash + 1));
  if (!begin || !last || !total || *last < *begin || *total <= *last) return std::nullopt;
  return ContentRange{*begin, *last + 1, *total};
}

}  // namespace pipeline::fetch
