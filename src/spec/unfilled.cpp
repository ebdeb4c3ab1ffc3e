#include "spec/unfilled.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "settings/decode.hpp"
#include "spec/placeholders.hpp"

namespace pipeline::spec {
namespace {

using core::Value;

constexpr const char* filled_elsewhere = "commands and conditions take placeholders";

void check_text(Value& scalar, settings::Diagnostics& diagnostics,
                const char* note = filled_elsewhere) {
  auto& text = scalar.scalar;
  const auto at = unescape_until_placeholder(text);
  if (!at) return;
  const auto end = std::min(text.find('}', *at), text.size() - 1);
  settings::report(diagnostics, "unfilled",
                   "nothing fills `" + text.substr(*at, std::min<std::size_t>(end + 1 - *at, 60)) +
                       "` here: the text is taken as it stands",
                   scalar.span, {note, "for a literal `${` write `$${`"});
}

void check_all(Value& value, settings::Diagnostics& diagnostics) {
  if (value.kind == Value::Kind::scalar) check_text(value, diagnostics);
  for (auto& item : value.items) check_all(item, diagnostics);
  for (auto& [key, member] : value.members) check_all(member, diagnostics);
}

/// Checks the texts that name no parameters; filled() fills in those that do.
void check_unless_filled(Value& value, settings::Diagnostics& diagnostics,
                         const char* note = "here, ${params.X} is filled in") {
  if (value.kind == Value::Kind::scalar && !names_parameters(value))
    check_text(value, diagnostics, note);
  for (auto& item : value.items) check_unless_filled(item, diagnostics, note);
  for (auto& [key, member] : value.members) check_unless_filled(member, diagnostics, note);
}

Value* member(Value& map, std::string_view key) { return const_cast<Value*>(map.find(key)); }

void check_members(Value& map, std::initializer_list<const char*> keys,
                   settings::Diagnostics& diagnostics) {
  for (const auto* key : keys)
    if (auto* value = member(map, key)) check_all(*value, diagnostics);
}

/// Checks the settings in which users expect `${...}` to be filled in, as shells and Docker do.
void check_settings_unfilled(Value& settings, settings::Diagnostics& diagnostics) {
  auto* docker = member(settings, "docker");
  if (!docker) return;
  for (const auto* key : {"environment", "runtime_environment", "parent_image", "labels"})
    if (auto* value = member(*docker, key)) check_unless_filled(*value, diagnostics);
}

void check_filled_keys(Value& map, settings::Diagnostics& diagnostics) {
  for (const auto* key : {"publish_to", "wait", "cache"})
    if (auto* value = member(map, key)) check_unless_filled(*value, diagnostics);
  if (auto* settings = member(map, "settings")) check_settings_unfilled(*settings, diagnostics);
}

}  // namespace

std::optional<std::size_t> unescape_until_placeholder(std::string& text) {
  for (auto at = text.find("${"); at != text.npos; at = text.find("${", at)) {
    if (at == 0 || text[at - 1] != '$') return at;
    text.erase(at - 1, 1);  // The `${` is now at `at - 1`.
  }
  return std::nullopt;
}

void check_unfilled(Value& file, settings::Diagnostics& diagnostics) {
  static constexpr std::initializer_list<const char*> keys = {"parameters", "environment",
                                                              "secrets", "version"};
  check_members(file, keys, diagnostics);
  if (auto* included = member(file, "include"))
    for (auto& entry : included->items) check_members(entry, {"parameters"}, diagnostics);
  check_filled_keys(file, diagnostics);
  auto* steps = member(file, "steps");
  if (!steps) return;
  for (auto& [name, step] : steps->members) {
    check_members(step, keys, diagnostics);
    check_filled_keys(step, diagnostics);
    if (auto* services = member(step, "services"))
      check_unless_filled(*services, diagnostics,
                          "`${params.X}` is filled in; an input is at /pipe/inputs/NAME, whose "
                          "path is in PIPE_INPUT_NAME");
    if (auto* matrix = member(step, "matrix"))
      for (auto& [axis, values] : matrix->members)
        for (auto& value : values.items) check_all(value, diagnostics);
  }
}

}  // namespace pipeline::spec
