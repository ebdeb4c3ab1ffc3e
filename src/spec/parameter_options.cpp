#include "spec/parameter_options.hpp"

#include <algorithm>
#include <optional>
#include <ranges>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/joined.hpp"
#include "model/value_builder.hpp"
#include "spec/matrix.hpp"
#include "spec/parameter_value.hpp"
#include "spec/unfilled.hpp"
#include "spec/yaml_writer.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

std::string shown(const nlohmann::json& value) {
  auto text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

/// Reads a list or a map, written as in the file or as JSON. @param written the option for messages
std::optional<Json> read_structure(const std::string& option, const std::string& written,
                                   const std::string& text, const nlohmann::json& declared,
                                   settings::Diagnostics& diagnostics) {
  settings::Diagnostics problems;
  const auto value = yaml::parse_yaml(text, problems);
  auto json = value && value->kind != core::Value::Kind::null
                  ? read_parameter(option, *value, problems)
                  : std::nullopt;
  if (json && std::string_view(kind_of(**json)) == kind_of(declared)) return json;
  const auto found =
      json ? settings::describe(*value) : settings::describe(model::plain_value(text, {}));
  settings::report(
      diagnostics, "bad-option",
      written + ": '" + option + "' is " + kind_of(declared) + ", such as " + shown(declared) +
          ", not " + found,
      {}, problems.empty() ? std::vector<std::string>{} : std::vector{problems.front().message});
  return std::nullopt;
}

/// Reads an option's value with the type of the file's own value: a text stays a text even if it
/// reads as a number. @param written the option for messages
std::optional<Json> read_option(const std::string& option, const std::string& written,
                                const std::string& text, const nlohmann::json& declared,
                                settings::Diagnostics& diagnostics) {
  if (declared.is_string()) return Json(text);
  if (declared.is_structured()) return read_structure(option, written, text, declared, diagnostics);
  const auto json = scalar_of(model::plain_value(text, {}));
  const bool fits = declared.is_null()     ? json.has_value()
                    : declared.is_number() ? json && (*json)->is_number()
                                           : json && (*json)->is_boolean();
  if (fits) return json;
  if (json && !json->is_null()) {
    settings::report(
        diagnostics, "bad-option",
        written + "=" + text + ": '" + option + "' is " +
            (declared.is_boolean() ? "true or false" : "a number, such as " + declared.dump()) +
            ", not " + settings::describe(model::plain_value(text, {})),
        {}, {"a value that is in quotes in the file may be any text"});
    return std::nullopt;
  }
  settings::report(diagnostics, "bad-option",
                   written + "=" + text + ": the value is empty, or a number that is too large",
                   {});
  return std::nullopt;
}

/// Returns the prefix by which `--param` names the parameters of a file: none in the pipeline's
/// own, `PREFIX.` in an included one. Nothing for a file that is included without a prefix.
std::optional<std::string> option_prefix(const FileScope& scope) {
  if (!scope.parent) return "";
  if (scope.prefix.empty()) return std::nullopt;
  return scope.prefix.substr(0, scope.prefix.size() - 1) + ".";
}

/// Replaces `member`, the part of `whole` that `path` names.
void set_member(Json& whole, nlohmann::json& member, const std::string& path, const Json& value) {
  if (path.empty()) {
    whole = value;
    return;
  }
  member = *value;
  if (whole.written)
    std::erase_if(*whole.written, [&](const auto& written) {
      return written.first == path || written.first.starts_with(path + ".");
    });
  keep_written(whole, path, value);
}

/// Returns the offset of the first `.` of the name; the name's size if there is none.
std::size_t dot_of(const std::string& name) { return std::min(name.find('.'), name.size()); }

}  // namespace

std::string ParameterOptions::written(const std::string& option) const {
  const auto place = places_.find(option);
  return place == places_.end() ? "--param " + option : place->second + ": " + option;
}

/// Replaces options that are maps by an option for each member. A file of parameters has the own
/// parameters of a step in a map below the step's name, and those of an included file in a map
/// below its prefix. A single option takes precedence over such a member.
void ParameterOptions::spread(const Parameters& of_pipeline) {
  const auto options = options_;
  for (const auto& [name, text] : options) {
    if (of_pipeline.contains(name) || text.find(':') == text.npos || name.find('.') != name.npos)
      continue;
    settings::Diagnostics ignored;
    const auto map = yaml::parse_yaml(text, ignored);
    if (!map || map->kind != core::Value::Kind::map) continue;
    options_.erase(name);
    const auto place = places_.find(name);
    for (const auto& [key, value] : map->members) {
      const auto member = name + "." + key.scalar;
      const bool is_new =
          options_
              .try_emplace(member,
                           value.kind == core::Value::Kind::scalar ? value.scalar : to_flow(value))
              .second;
      if (is_new && place != places_.end()) places_.emplace(member, place->second);
    }
  }
}

/// Sets a parameter, or a member of one: `optimizer.lr`. Returns false if there is none.
bool ParameterOptions::set(Parameters& parameters, const std::string& name,
                           const std::string& option, std::string text) {
  const auto dot = dot_of(name);
  const auto found = parameters.find(name.substr(0, dot));
  if (found == parameters.end()) return false;
  auto* declared = &*found->second;
  if (dot < name.size()) {
    const auto member = member_of(found->first, *declared, name.substr(dot + 1));
    if (!member.value) return false;
    declared = const_cast<nlohmann::json*>(member.value);  // The parameters are not const.
  }
  taken_.insert(option);
  if (unescape_until_placeholder(text))
    settings::report(diagnostics_, "unfilled",
                     written(option) + ": nothing fills `${...}` in a parameter", {},
                     {"for a literal `${` write `$${`"});
  if (auto value = read_option(option, written(option), text, *declared, diagnostics_))
    set_member(found->second, *declared, name.substr(std::min(dot + 1, name.size())), *value);
  return true;
}

void ParameterOptions::apply(FileScope& scope) {
  if (!scope.parent) spread(scope.defaults.parameters);
  const auto prefix = option_prefix(scope);
  if (!prefix) return;
  for (const auto& [option, text] : options_)
    if (option.starts_with(*prefix))
      set(scope.defaults.parameters, option.substr(prefix->size()), option, text);
}

void ParameterOptions::apply(std::vector<ReadStep>& steps) {
  for (const auto& [option, text] : options_) {
    const auto dot = dot_of(option);
    if (dot == option.size() || taken_.contains(option)) continue;
    const auto step = std::ranges::find(steps, option.substr(0, dot),
                                        [](const ReadStep& each) { return each.spec.name; });
    if (step == steps.end()) continue;
    const auto name = option.substr(dot + 1);
    if (set(step->spec.parameters, name, option, text))
      step->add_own_parameter(name.substr(0, dot_of(name)));
  }
}

void ParameterOptions::report_unknown(const Defaults& defaults,
                                      const std::vector<ReadStep>& steps) {
  for (const auto& [option, text] : options_) {
    if (taken_.contains(option)) continue;
    const auto dot = dot_of(option);
    const auto key = option.substr(std::min(dot + 1, option.size()));
    const auto step = std::ranges::find(steps, option.substr(0, dot),
                                        [](const ReadStep& each) { return each.spec.name; });
    if (step != steps.end() && std::ranges::count(axes_of(*step), key))
      settings::report(
          diagnostics_, "bad-option",
          written(option) + ": '" + key + "' is an axis of the step's matrix, not one value", {},
          {"`--step " + step->spec.name + "[" + key + "=" + text +
           "]` runs the instances with this value"});
    else
      report_unknown(option, defaults, steps);
  }
}

void ParameterOptions::report_unknown(const std::string& name, const Defaults& defaults,
                                      const std::vector<ReadStep>& steps) {
  const auto dot = dot_of(name);
  const auto map = defaults.parameters.find(name.substr(0, dot));
  if (dot < name.size() && map != defaults.parameters.end() && map->second->is_structured()) {
    const auto member = member_of(map->first, *map->second, name.substr(dot + 1));
    return settings::report(diagnostics_, "unknown-parameter",
                            written(name) + ": " + member.problem, {}, {}, member.suggestion);
  }
  std::vector<std::string> known;
  for (const auto& [parameter, value] : defaults.parameters) known.push_back(parameter);
  std::string suggestion = core::did_you_mean(name, known);
  if (suggestion.empty()) suggestion = core::did_you_mean(name.substr(0, dot), known);
  const auto add = [&](const std::string& prefix, const std::string& parameter) {
    known.push_back(prefix + parameter);
    if (parameter == name && suggestion.empty())
      suggestion = "did you mean '" + known.back() + "'?";
  };
  std::set<const FileScope*> files;
  for (const ReadStep& each : steps) {
    const auto& of_file = each.scope->defaults.parameters;
    const auto prefix = option_prefix(*each.scope);
    if (each.scope->parent && prefix && files.insert(each.scope).second)
      for (const auto& [parameter, value] : of_file) add(*prefix, parameter);
    for (const auto& [parameter, value] : each.spec.parameters)
      if (!defaults.parameters.contains(parameter) && !(prefix && of_file.contains(parameter)))
        add(each.spec.name + ".", parameter);
  }
  if (suggestion.empty()) suggestion = core::did_you_mean(name, known);
  constexpr std::size_t max_named = 20;
  std::string list = known.empty() ? "the pipeline has no parameters" : "it has: ";
  list += core::joined(known | std::views::take(max_named), ", ");
  if (known.size() > max_named) list += ", ...";
  settings::report(diagnostics_, "unknown-parameter",
                   written(name) + ": there is no such parameter", {}, {std::move(list)},
                   std::move(suggestion));
}

}  // namespace pipeline::spec
