/// @file
/// The version and commit of this program, as `--version` prints them.
#pragma once

#include <string_view>

namespace pipeline::cli {

/// `pipe`, the version and, if it is known, the commit in parentheses (cmake/BuiltFrom.cmake), with
/// a line end.
extern const std::string_view built_from;

}  // namespace pipeline::cli
