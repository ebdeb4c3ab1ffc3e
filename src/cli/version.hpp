/// @file
/// Versions such as 1.1.12-rc.2, compared by their numbers.
#pragma once

#include <array>
#include <string_view>

namespace pipeline::cli {

/// True if the first three numbers of `version` are smaller; a version that cannot be read is not
/// older.
bool is_older(std::string_view version, std::array<unsigned, 3> than);

}  // namespace pipeline::cli
