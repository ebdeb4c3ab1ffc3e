/// @file
/// Values of parameters: texts, numbers, booleans, and lists and maps of those.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/value.hpp"
#include "settings/decode.hpp"

namespace pipeline::spec {

/// Reads the value of a parameter. Reports each invalid part at its own position, also deep in a
/// list or map, and returns nothing then.
std::optional<nlohmann::json> read_parameter(const std::string& name, const core::Value& value,
                                             settings::Diagnostics& diagnostics);

/// Returns "a text", "a number", "true or false", "a list" or "a map".
const char* kind_of(const nlohmann::json& value);

/// The value that a name such as `optimizer.lr` or `names.0` refers to in a parameter.
struct ParameterMember {
  const nlohmann::json* value = nullptr;  ///< Null if there is none.
  std::string problem = {};               ///< The problem if there is none.
  std::string suggestion = {};
};

/// @param name  the parameter's, for messages @param path  the names behind it: `lr`, `layers.0`
ParameterMember member_of(const std::string& name, const nlohmann::json& value,
                          std::string_view path);

}  // namespace pipeline::spec
