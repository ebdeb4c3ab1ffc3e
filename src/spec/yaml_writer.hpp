/// @file
/// A document as YAML text.
#pragma once

#include <string>

#include "core/value.hpp"

namespace pipeline::spec {

/// parse_yaml() makes an equal document of it. Maps one member a line, lists of scalars in one
/// line; a line end at its end.
std::string to_yaml(const core::Value& map);

}  // namespace pipeline::spec
