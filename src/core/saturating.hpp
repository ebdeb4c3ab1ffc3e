/// @file
/// Arithmetic that stays within the range of its type.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pipeline::core {

/// Returns `a - b`, or 0 if `b` is larger.
constexpr std::uint64_t saturating_subtract(std::uint64_t a, std::uint64_t b) {
  return a - std::min(a, b);
}

}  // namespace pipeline::core
