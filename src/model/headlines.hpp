/// @file
/// The bound of the metrics that say how good a run is.
#pragma once

#include <cstddef>

namespace pipeline::model {

/// The most metrics with which reports, pages and commands begin.
inline constexpr std::size_t max_headlines = 8;

}  // namespace pipeline::model
