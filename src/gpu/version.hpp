/// @file
/// Dotted version numbers of drivers, CUDA and wheels.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::gpu {

struct Version {
  std::vector<unsigned> parts;  ///< `12.2.2`: 12, 2, 2; at least one.
  std::string written;          ///< The original text; `535.54.03` has a zero that `parts` lacks.

  /// Parses `535.54.03`; returns nothing for texts with characters other than digits and dots, or
  /// with more than six parts.
  static std::optional<Version> parse(std::string_view text);
  std::string text() const;
  unsigned major() const { return parts.empty() ? 0 : parts.front(); }
  /// Returns the first `count` parts.
  Version first(std::size_t count) const;
  /// Missing parts count as zero: 12.2 equals 12.2.0.
  std::strong_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const { return (*this <=> other) == 0; }
};

}  // namespace pipeline::gpu
