/// @file
/// The maximum number of headlines: the metrics that say how good a run is.
#pragma once

#include <cstddef>

namespace pipeline::model {

/// Reports, pages and commands begin with so many metrics at most.
inline constexpr std::size_t max_headlines = 8;

}  // namespace pipeline::model
