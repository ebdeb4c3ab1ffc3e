/// @file
/// Rewrites the few notations that JSON allows and YAML does not.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::spec {

/// Returns the JSON text with tabs between tokens replaced by spaces, and with surrogate pairs in
/// texts (`\ud83d\ude00`) replaced by their characters. Line numbers are kept; columns too, except
/// after such a pair.
std::string json_as_yaml(std::string_view json);

}  // namespace pipeline::spec
