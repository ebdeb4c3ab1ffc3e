/// @file
/// Dotted version numbers, as drivers, CUDA and wheels have.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::gpu {

struct Version {
  std::vector<unsigned> parts;  ///< `12.2.2`: 12, 2, 2; at least one.
  std::string written;          ///< As it was read; `535.54.03` has a zero that its parts have not.

  /// `535.54.03`; nothing for what has other characters than digits and dots, or more than six
  /// parts.
  static std::optional<Version> parse(std::string_view text);
  std::string text() const;
  unsigned major() const { return parts.empty() ? 0 : parts.front(); }
  /// The first `count` parts.
  Version first(std::size_t count) const;
  /// Missing parts are zero: 12.2 and 12.2.0 are equal.
  std::strong_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const { return (*this <=> other) == 0; }
};

}  // namespace pipeline::gpu
