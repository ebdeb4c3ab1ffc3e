/// @file
/// Durations in options: `90_s`, `10_min` (pipeline::literals), or a std::chrono::duration of whole
/// milliseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

#include <pipeline/detail/chrono.hpp>

namespace pipeline {

/// A span of time in milliseconds. Converts to and from the durations of <chrono> where no
/// precision is lost. Neither this header nor <pipeline/pipeline.hpp> includes <chrono>, which is
/// slow to compile.
class Duration {
 public:
  /// Makes a duration of zero.
  constexpr Duration() = default;
  constexpr explicit Duration(std::int64_t milliseconds) : milliseconds_(milliseconds) {}
  template <detail::WholeMilliseconds D>
  constexpr Duration(const D& time)
      : milliseconds_(static_cast<std::int64_t>(time.count()) * detail::milliseconds_per_tick<D>) {}

  template <detail::HoldsMilliseconds D>
  constexpr operator D() const {
    return D(static_cast<typename D::rep>(milliseconds_) * detail::ticks_per_millisecond<D>);
  }

  static constexpr Duration zero() { return {}; }
  /// Returns the number of milliseconds.
  constexpr std::int64_t count() const { return milliseconds_; }
  friend constexpr auto operator<=>(const Duration&, const Duration&) = default;

 private:
  std::int64_t milliseconds_ = 0;
};

}  // namespace pipeline
