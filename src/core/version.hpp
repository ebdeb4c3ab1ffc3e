/// @file
/// Compares versions such as 1.1.12-rc.2 by their numbers.
#pragma once

#include <array>
#include <string_view>

namespace pipeline::core {

/// Returns true if the first three numbers of `version` are smaller than `than`. A missing number
/// counts as 0. Returns false if `version` does not begin with a number.
bool is_older(std::string_view version, std::array<unsigned, 3> than);

}  // namespace pipeline::core
