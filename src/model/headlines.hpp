/// @file
/// The maximum number of headlines: the metrics that say how good a run is.
#pragma once

#include <cstddef>

namespace pipeline::model {

/// Reports, pages and commands begin with at most this many metrics.
inline constexpr std::size_t max_headlines = 8;

}  // namespace pipeline::model
