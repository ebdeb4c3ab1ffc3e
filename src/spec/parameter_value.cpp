#include "spec/parameter_value.hpp"

#include <vector>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/json_member.hpp"
#include "core/text.hpp"
#include "settings/formats.hpp"

namespace pipeline::spec {
namespace {

/// Maximum size of a list or map as JSON, in which it is one word of a command and one variable:
/// Linux limits each of them to 128 KiB.
constexpr std::size_t max_bytes = 64 << 10;

/// Returns true for digits such as `01234` and `-07.5`, whose first one a number would lose.
bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

std::optional<Json> read(const std::string& name, const core::Value& value,
                         settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::null) return Json();
  if (value.kind == core::Value::Kind::scalar) {
    if (!settings::formats::text.accepts(value.scalar)) {
      settings::report(diagnostics, "control-character",
                       "parameter '" + name + "' has a control character", value.span);
      return std::nullopt;
    }
    return read_scalar(value, diagnostics);
  }
  const bool is_list = value.kind == core::Value::Kind::list;
  Json made(is_list ? nlohmann::json::array() : nlohmann::json::object());
  bool is_whole = true;
  for (const auto& item : value.items) {
    auto json = read(name, item, diagnostics);
    is_whole &= json.has_value();
    if (json) keep_written(made, std::to_string(made->size()), *json);
    if (json) made->push_back(std::move(**json));
  }
  for (const auto& [key, member] : value.members) {
    const bool is_name = settings::formats::text.accepts(key.scalar);
    if (!is_name)
      settings::report(diagnostics, "control-character",
                       "a key of parameter '" + name + "' has a control character", key.span);
    auto json = read(name, member, diagnostics);
    is_whole &= is_name && json.has_value();
    if (json) keep_written(made, key.scalar, *json);
    if (json) (*made)[key.scalar] = std::move(**json);
  }
  return is_whole ? std::optional(std::move(made)) : std::nullopt;
}

/// Returns true for an item of a matrix that is, or may turn out to be, the JSON of a list or map.
bool may_be_json_text(const nlohmann::json& value) {
  if (value.is_null()) return true;  // An item that a step will make.
  return value.is_string() && value.get_ref<const std::string&>().find_first_of("{[") == 0;
}

}  // namespace

void keep_written(Json& whole, const std::string& path, const Json& part) {
  if (!part.written) return;
  if (!whole.written) whole.written.emplace();
  for (const auto& [below, text] : *part.written)
    whole.written->emplace(below.empty() ? path : path + "." + below, text);
}

Json part_of(const Json& whole, const nlohmann::json& member, const std::string& path) {
  Json part(member);
  if (!whole.written) return part;
  std::map<std::string, std::string> written;
  if (const auto own = whole.written->find(path); own != whole.written->end())
    written.emplace("", own->second);
  const auto prefix = path + ".";
  for (auto below = whole.written->lower_bound(prefix);
       below != whole.written->end() && below->first.starts_with(prefix); ++below)
    written.emplace(below->first.substr(prefix.size()), below->second);
  if (!written.empty()) part.written = std::move(written);
  return part;
}

std::optional<Json> scalar_of(const core::Value& scalar) {
  if (!scalar.quoted && has_leading_zero(scalar.scalar)) return Json(scalar.scalar);
  const auto json = settings::scalar_to_json(scalar);
  if (!json) return std::nullopt;
  Json value(*json);
  if ((json->is_number() || json->is_boolean()) && json->dump() != scalar.scalar)
    value.written.emplace().emplace("", scalar.scalar);
  return value;
}

std::optional<Json> read_scalar(const core::Value& scalar, settings::Diagnostics& diagnostics) {
  auto value = scalar_of(scalar);
  if (!value)
    settings::report(
        diagnostics, "bad-number",
        "the number " + scalar.scalar.substr(0, 40) + " is more than a parameter can hold",
        scalar.span, {"put it in quotes to pass it on as a text"});
  return value;
}

std::optional<Json> read_parameter(const std::string& name, const core::Value& value,
                                   settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::null) {
    settings::report_type(diagnostics, name, "a text, a number, a boolean, a list or a map", value);
    return std::nullopt;
  }
  auto json = read(name, value, diagnostics);
  if (!json || !(*json)->is_structured()) return json;
  if (const auto bytes = (*json)->dump().size(); bytes > max_bytes) {
    settings::report(diagnostics, "wrong-type",
                     "'" + name + "' has " + std::to_string(bytes) +
                         " bytes as JSON, and a list "
                         "or map at most " +
                         std::to_string(max_bytes),
                     value.span, {},
                     "write it to a file, and name that under `inputs` of the steps that read it");
    return std::nullopt;
  }
  return json;
}

const char* kind_of(const nlohmann::json& value) {
  return value.is_boolean()  ? "true or false"
         : value.is_number() ? "a number"
         : value.is_array()  ? "a list"
         : value.is_object() ? "a map"
                             : "a text";
}

ParameterMember member_of(const std::string& name, const nlohmann::json& value,
                          std::string_view path) {
  const auto* at = &value;
  auto walked = name;
  for (const auto part : core::split(path, '.')) {
    const std::string key(part);
    const auto has_no = "'" + walked + "' has no ";
    if (const auto* found = core::member(*at, part)) {
      at = found;
      walked += "." + key;
    } else if (at->is_array()) {
      return {nullptr, has_no + "item '" + key + "': it is a list with " +
                           std::to_string(at->size()) + ", counted from 0"};
    } else if (at->is_object()) {
      std::vector<std::string> known;
      for (const auto& [each, member] : at->items()) known.push_back(each);
      return {nullptr, has_no + "member '" + key + "'", core::did_you_mean(key, known)};
    } else if (may_be_json_text(*at)) {
      return {nullptr,
              has_no + "member '" + key +
                  "': a list or map among the items of a matrix is its JSON, in one text",
              "read it in the step's program, or list rows whose members have names, `matrix: "
              "{include: [{" +
                  key + ": ...}]}`"};
    } else {
      return {nullptr, has_no + "member '" + key + "': it is one value, not a list or map"};
    }
  }
  return {at};
}

}  // namespace pipeline::spec
