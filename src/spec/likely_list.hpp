/// @file
/// Suggestions for ranges, which lists of values do not have.
#pragma once

#include <string>

namespace pipeline::spec {

/// Returns `1, 2, 3` for the ranges `1..3`, `1-3`, `1:3`, and `range(1, 4)` as in Python, and other
/// texts unchanged.
std::string values_in(const std::string& text);

}  // namespace pipeline::spec
