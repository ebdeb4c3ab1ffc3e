/// @file
/// Values of parameters: texts, numbers, booleans, and lists and maps of those.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pipeline/json.hpp>

#include "core/value.hpp"
#include "settings/decode.hpp"

namespace pipeline::spec {

/// Reads the value of a parameter. Reports each invalid part at its own position, also deep in a
/// list or map, and returns nothing then.
std::optional<Json> read_parameter(const std::string& name, const core::Value& value,
                                   settings::Diagnostics& diagnostics);

/// Reads one text, number or boolean. A number or boolean keeps the text that was written. Digits
/// that begin with a 0, such as `01234`, are a text. Reports a number beyond what JSON holds, and
/// returns nothing then.
std::optional<Json> read_scalar(const core::Value& scalar, settings::Diagnostics& diagnostics);
/// Returns what read_scalar() does, for a text outside of any document: a number beyond what JSON
/// holds is not reported.
std::optional<Json> scalar_of(const core::Value& scalar);

/// Adds the user's texts of the numbers in `part` to Json::written of `whole`.
/// @param path the place of `part` in `whole`
void keep_written(Json& whole, const std::string& path, const Json& part);

/// Returns `member`, the part of `whole` that `path` names, with the texts of its numbers.
Json part_of(const Json& whole, const nlohmann::json& member, const std::string& path);

/// Returns "a text", "a number", "true or false", "a list" or "a map".
const char* kind_of(const nlohmann::json& value);

/// The value that a name such as `optimizer.lr` or `names.0` refers to in a parameter.
struct ParameterMember {
  const nlohmann::json* value = nullptr;  ///< Null if there is none.
  std::string problem = {};               ///< The problem if there is none.
  std::string suggestion = {};
};

/// Returns the part of a parameter's value that `path` names.
/// @param name the parameter's name, for messages
/// @param path the names that follow the parameter's: `lr`, `layers.0`
ParameterMember member_of(const std::string& name, const nlohmann::json& value,
                          std::string_view path);

}  // namespace pipeline::spec
