/// @file
/// Suggests the list of values that a user who wrote a range may have meant: a matrix takes lists,
/// and has no syntax for ranges.
#pragma once

#include <string>

namespace pipeline::spec {

/// Returns the values of a range, separated by commas: `1, 2, 3` for `1..3`, `1-3`, `1:3`, and for
/// Python's `range(1, 4)`. Returns every other text, and a long range, unchanged.
std::string values_in(const std::string& text);

}  // namespace pipeline::spec
