/// @file
/// Sizes as YAML writes them: `8_GiB`, `512_MB`; and the standard's durations: `90s`, `10min`.
#pragma once

#include <pipeline/chrono.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {
inline namespace literals {

using namespace std::chrono_literals;

constexpr Bytes operator""_KB(unsigned long long n) { return n * 1000; }
constexpr Bytes operator""_MB(unsigned long long n) { return n * 1000 * 1000; }
constexpr Bytes operator""_GB(unsigned long long n) { return n * 1000 * 1000 * 1000; }
constexpr Bytes operator""_TB(unsigned long long n) { return n * 1000 * 1000 * 1000 * 1000; }
constexpr Bytes operator""_KiB(unsigned long long n) { return n << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return n << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return n << 30; }
constexpr Bytes operator""_TiB(unsigned long long n) { return n << 40; }

}  // namespace literals
}  // namespace pipeline
