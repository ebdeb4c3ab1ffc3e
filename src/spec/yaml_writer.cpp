#include "spec/yaml_writer.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <nlohmann/json.hpp>

#include "core/joined.hpp"
#include "core/text.hpp"
#include "settings/decode.hpp"

namespace pipeline::spec {
namespace {

/// Returns true if the text needs no quotes in any context and is not a number, boolean or null,
/// neither in YAML 1.2 nor in YAML 1.1.
bool is_plain_text(const std::string& text) {
  static const std::set<std::string> booleans{"yes", "no", "on", "off", "y", "n"};
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./-").find(c) != std::string_view::npos;
  };
  if (text.empty() ||
      !(std::isalpha(static_cast<unsigned char>(text.front())) || text.front() == '/'))
    return false;
  if (!std::all_of(text.begin(), text.end(), is_safe)) return false;
  if (booleans.contains(core::lower(text))) return false;
  const auto meaning = settings::plain_to_json(text);
  return meaning && meaning->is_string();
}

/// Returns the text in quotes. A JSON text is a valid YAML text; invalid UTF-8 was rejected when
/// the document was read.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string scalar(const core::Value& value) {
  if (value.kind == core::Value::Kind::null) return "null";
  return !value.quoted || is_plain_text(value.scalar) ? value.scalar : quoted(value.scalar);
}

std::string key(const core::Value& value) {
  return is_plain_text(value.scalar) ? value.scalar : quoted(value.scalar);
}

void write_members(const core::Value& map, const std::string& indent, std::string& text) {
  for (const auto& [name, member] : map.members) {
    text += indent + key(name) + ":";
    if (member.kind == core::Value::Kind::map && !member.members.empty()) {
      text += "\n";
      write_members(member, indent + "  ", text);
    } else {
      text += " " + to_flow(member) + "\n";
    }
  }
}

}  // namespace

std::string to_flow(const core::Value& value) {
  const auto member = [](const core::Value::Member& each) {
    return key(each.first) + ": " + to_flow(each.second);
  };
  switch (value.kind) {
    case core::Value::Kind::list: return "[" + core::joined(value.items, ", ", to_flow) + "]";
    case core::Value::Kind::map: return "{" + core::joined(value.members, ", ", member) + "}";
    default: return scalar(value);
  }
}

std::string to_yaml(const core::Value& map) {
  std::string text;
  write_members(map, "", text);
  return text;
}

}  // namespace pipeline::spec
