#include "ecs_import/task_document.hpp"

#include <algorithm>
#include <charconv>

#include "settings/decode.hpp"

namespace pipeline::ecs_import {

bool is_blank(const core::Value& value) {
  switch (value.kind) {
    case core::Value::Kind::null: return true;
    case core::Value::Kind::scalar:
      return value.scalar.empty() ||
             (!value.quoted && (value.scalar == "0" || value.scalar == "false"));
    case core::Value::Kind::list: return value.items.empty();
    case core::Value::Kind::map: return value.members.empty();
  }
  return true;
}

const core::Value* given(const core::Value& map, std::string_view key) {
  const core::Value* value = map.find(key);
  return value && value->kind != core::Value::Kind::null ? value : nullptr;
}

void TaskDocument::report_error(std::string message, core::Span span,
                                std::vector<std::string> notes) {
  settings::report(diagnostics_, "bad-task", std::move(message), span, std::move(notes));
}

void TaskDocument::report_unsupported(std::string message, core::Span span) {
  core::Diagnostic diagnostic;
  diagnostic.code = "not-honoured";
  diagnostic.message = std::move(message);
  diagnostic.span = span;
  diagnostic.severity = core::Severity::warning;
  notices_.push_back(std::move(diagnostic));
}

void TaskDocument::check_keys(const core::Value& map, std::span<const TaskKey> known,
                              const std::string& label) {
  std::vector<std::string> names;
  for (const auto& key : known) names.emplace_back(key.name);
  for (const auto& [key, value] : map.members) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const TaskKey& each) { return key.scalar == each.name; });
    if (found == known.end())
      settings::report(diagnostics_, "unknown-key", "unknown key '" + key.scalar + "' in " + label,
                       key.span, {"ECS has no such key there"},
                       core::did_you_mean(key.scalar, names));
    else if (found->notice && !is_blank(value))
      report_unsupported("'" + key.scalar + "' of " + label + " is not honoured: " + found->notice,
                         key.span);
  }
}

std::optional<std::int64_t> TaskDocument::whole_number(const std::string& key,
                                                       const core::Value& value, std::int64_t min,
                                                       std::int64_t max) {
  std::int64_t number = 0;
  const auto& digits = value.scalar;
  bool is_too_large = false;
  if (value.kind == core::Value::Kind::scalar) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool has_digits_only = end == digits.data() + digits.size();
    if (error == std::errc() && has_digits_only && number >= min && number <= max) return number;
    const bool overflows = error == std::errc::result_out_of_range && digits[0] != '-';
    is_too_large = has_digits_only && (overflows || number > max);
  }
  const auto range =
      is_too_large ? "at most " + std::to_string(max) : "at least " + std::to_string(min);
  settings::report_type(diagnostics_, key, "a whole number, " + range, value);
  return std::nullopt;
}

const core::Value* TaskDocument::map_at(const std::string& key, const core::Value& parent) {
  const core::Value* value = given(parent, key);
  if (!value || value->kind == core::Value::Kind::map) return value;
  settings::report_type(diagnostics_, key, "a map", *value);
  return nullptr;
}

std::vector<const core::Value*> TaskDocument::maps(const std::string& key, const core::Value& map) {
  std::vector<const core::Value*> found;
  const core::Value* list = given(map, key);
  if (!list) return found;
  if (list->kind != core::Value::Kind::list)
    settings::report_type(diagnostics_, key, "a list", *list);
  for (const core::Value& item : list->items) {
    if (item.kind == core::Value::Kind::map)
      found.push_back(&item);
    else
      settings::report_type(diagnostics_, key, "a list of maps", item);
  }
  return found;
}

std::optional<std::string> TaskDocument::text(const std::string& key, const core::Value& map) {
  const core::Value* value = given(map, key);
  if (!value) {
    report_error("'" + key + "' is missing here", map.span);
    return std::nullopt;
  }
  return settings::read_text(key, *value, settings::formats::text, diagnostics_);
}

}  // namespace pipeline::ecs_import
