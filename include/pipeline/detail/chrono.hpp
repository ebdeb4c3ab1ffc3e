/// @file
/// Recognises the durations of <chrono> by their members, without that header.
#pragma once

#include <type_traits>

namespace pipeline::detail {

template <class D>
concept ChronoDuration = requires(const D& time) {
  typename D::rep;
  D::period::num;
  D::period::den;
  time.count();
};

/// A duration of whole milliseconds or multiples of them, such as minutes: converting to
/// milliseconds loses nothing.
template <class D>
concept WholeMilliseconds =
    ChronoDuration<D> && std::is_integral_v<typename D::rep> && D::period::num * 1000 %
        D::period::den ==
    0;

/// A duration of milliseconds or a finer unit, or of floating point: converting from milliseconds
/// loses nothing.
template <class D>
concept HoldsMilliseconds = ChronoDuration<D> &&
    (std::is_floating_point_v<typename D::rep> || D::period::den % (D::period::num * 1000) == 0);

template <class D>
inline constexpr auto milliseconds_per_tick = D::period::num * 1000 / D::period::den;

template <class D>
inline constexpr auto ticks_per_millisecond = static_cast<typename D::rep>(D::period::den) /
                                              static_cast<typename D::rep>(D::period::num * 1000);

}  // namespace pipeline::detail
