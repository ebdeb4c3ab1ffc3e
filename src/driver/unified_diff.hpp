/// @file
/// Changes of a text in the form that `git apply` and `patch -p1` take.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace pipeline::driver {

/// Returns the unified diff of a text in which lines are replaced; empty if no line is.
/// @param name  the file's name, which the diff shows as `a/NAME` and `b/NAME`
/// @param lines the new text of each replaced line, by its number from 1
std::string unified_diff(std::string_view name, std::string_view text,
                         const std::map<unsigned, std::string>& lines);

}  // namespace pipeline::driver
