/// @file
/// Sizes and durations as YAML writes them: `8_GiB`, `512_MB`, `90_s`, `10_min`. Use them with
/// `using namespace pipeline::literals`.
#pragma once

#include <cstdint>

#include <pipeline/duration.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {
inline namespace literals {

constexpr Bytes operator""_KB(unsigned long long n) { return n * 1000; }
constexpr Bytes operator""_MB(unsigned long long n) { return n * 1000 * 1000; }
constexpr Bytes operator""_GB(unsigned long long n) { return n * 1000 * 1000 * 1000; }
constexpr Bytes operator""_TB(unsigned long long n) { return n * 1000 * 1000 * 1000 * 1000; }
constexpr Bytes operator""_KiB(unsigned long long n) { return n << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return n << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return n << 30; }
constexpr Bytes operator""_TiB(unsigned long long n) { return n << 40; }

constexpr Duration operator""_ms(unsigned long long n) {
  return Duration(static_cast<std::int64_t>(n));
}
constexpr Duration operator""_s(unsigned long long n) {
  return Duration(static_cast<std::int64_t>(n) * 1000);
}
constexpr Duration operator""_min(unsigned long long n) {
  return Duration(static_cast<std::int64_t>(n) * 60 * 1000);
}
constexpr Duration operator""_h(unsigned long long n) {
  return Duration(static_cast<std::int64_t>(n) * 60 * 60 * 1000);
}

}  // namespace literals
}  // namespace pipeline
