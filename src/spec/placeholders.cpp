#include "spec/placeholders.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/json_member.hpp"
#include "core/text.hpp"
#include "gpu/resource_checks.hpp"
#include "model/instance.hpp"
#include "model/value_builder.hpp"
#include "settings/contradictions.hpp"
#include "spec/data_reader.hpp"
#include "spec/include.hpp"
#include "spec/nodes_reader.hpp"
#include "spec/parameter_value.hpp"
#include "spec/retry_checks.hpp"
#include "spec/services_reader.hpp"
#include "spec/step_reader.hpp"
#include "spec/template.hpp"

namespace pipeline::spec {
namespace {

using Parameters = std::map<std::string, Json>;

constexpr std::string_view opening = "${params.";
constexpr std::size_t max_filled = 1 << 20;  // Bytes of a text with its parameters.
constexpr std::array filled_keys{"settings",   "retry", "timeout",  "cache", "stalled_after",
                                 "publish_to", "wait",  "services", "nodes"};

/// Returns a parameter, or a member of one; null if only the run will know it.
const nlohmann::json& parameter_named(const std::string& name, const Parameters& parameters) {
  const auto names = core::split(name, '.');
  const nlohmann::json* value = &*parameters.at(std::string(names[0]));
  for (std::size_t i = 1; value && i < names.size(); ++i) value = core::member(*value, names[i]);
  return *value;
}

core::Value filled_scalar(const core::Value& scalar, const Parameters& parameters,
                          MemoryBudget& budget, settings::Diagnostics& diagnostics) {
  TemplateNames names;
  for (const auto& [name, value] : parameters) names.parameters.push_back(name);
  names.values = &parameters;
  std::vector<TemplateProblem> problems;
  const auto text = parse_template(scalar.scalar, names, problems);
  for (auto& problem : problems)
    settings::report(diagnostics, problem.code, std::move(problem.message), scalar.span,
                     {"here, ${params.X} is filled in"}, std::move(problem.suggestion));
  std::string result;
  for (const auto& part : text.parts) {
    if (const auto* literal = std::get_if<std::string>(&part)) {
      result += *literal;
      continue;
    }
    const auto& reference = std::get<Template::Reference>(part);
    const auto is_parameter = reference.placeholder == Template::Placeholder::parameter;
    const auto value =
        is_parameter ? parameter_named(reference.name, parameters) : nlohmann::json();
    if (value.is_null()) {
      settings::report(diagnostics, "unknown-reference",
                       "'" + reference.name +
                           "' is known only when the run has made it, and this "
                           "is read before",
                       scalar.span,
                       {"parameters, and axes with values that the file lists, are known"});
      continue;
    }
    if (!budget.take(1, model::memory_of(value), "'${params." + reference.name + "}'", scalar.span))
      break;
    if (value.is_structured() && text.parts.size() == 1) return model::value_of(value, scalar.span);
    const auto dot = std::min(reference.name.find('.'), reference.name.size());
    const auto path = reference.name.substr(std::min(dot + 1, reference.name.size()));
    const auto given = part_of(parameters.at(reference.name.substr(0, dot)), value, path);
    if (result.size() > max_filled) {
      settings::report(diagnostics, "too-large", "with its parameters, the text exceeds 1 MiB",
                       scalar.span);
      break;
    }
    const bool is_written = given.written && given.written->contains("");
    result += is_written ? given.written->at("") : model::axis_text(value);
  }
  return model::plain_value(std::move(result), scalar.span);
}

/// Adds the names of the parameters that texts of the value name, however deep.
void add_names(const core::Value& value, std::set<std::string>& names) {
  const std::string_view text = value.scalar;
  for (auto at = text.find(opening); at != text.npos; at = text.find(opening, at + 1)) {
    const auto name = text.substr(at + opening.size());
    names.emplace(name.substr(0, name.find_first_of(".}")));
  }
  for (const auto& item : value.items) add_names(item, names);
  for (const auto& [key, member] : value.members) add_names(member, names);
}

void add_filled_names_of_map(const core::Value& map, std::set<std::string>& names) {
  for (const auto& [key, value] : map.members)
    if (is_filled_key(key.scalar) || key.scalar == "inputs") add_names(value, names);
}

/// Copies the values that `key` sets to `to`, which is the defaults of a file or a step.
template <class Target>
void take(const Defaults& from, std::string_view key, Target& to) {
  if (key == "settings") to.settings = from.settings;
  if (key == "retry") to.retry = from.retry;
  if (key == "timeout") to.timeout = from.timeout;
  if (key == "stalled_after") to.stalled_after = from.stalled_after;
  if (key != "cache") return;
  if (from.cache) to.cache = *from.cache;
  to.cache_max_age = from.cache_max_age;
  to.cache_until = from.cache_until;
}

}  // namespace

bool is_filled_key(std::string_view key) {
  return std::ranges::find(filled_keys, key) != filled_keys.end();
}

bool names_parameters(const core::Value& value) {
  if (value.scalar.find(opening) != std::string::npos) return true;
  return std::ranges::any_of(value.items, names_parameters) ||
         std::ranges::any_of(value.members,
                             [](const auto& member) { return names_parameters(member.second); });
}

void add_filled_names(const core::Value& file, std::set<std::string>& names) {
  add_filled_names_of_map(file, names);
  const auto* steps = file.find("steps");
  if (!steps) return;
  for (const auto& [name, step] : steps->members) add_filled_names_of_map(step, names);
}

core::Value filled(const core::Value& value, const Parameters& parameters, MemoryBudget& budget,
                   settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar)
    return names_parameters(value) ? filled_scalar(value, parameters, budget, diagnostics) : value;
  auto made = value;
  for (auto& item : made.items) item = filled(item, parameters, budget, diagnostics);
  for (auto& member : made.members)
    member.second = filled(member.second, parameters, budget, diagnostics);
  return made;
}

/// Returns a map with the keys whose texts name parameters, filled in.
core::Value StepReader::filled_members(const core::Value& map, const Parameters& values) {
  auto made = model::empty_value(core::Value::Kind::map, map.span);
  for (const auto& [key, value] : map.members)
    if (is_filled_key(key.scalar) && names_parameters(value))
      made.members.push_back({key, filled(value, values, budget_, diagnostics_)});
  return made;
}

void StepReader::fill(const core::Value& map, Defaults& defaults, const Defaults* from) {
  const auto before = diagnostics_.size();
  const auto body = filled_members(map, defaults.parameters);
  if (body.members.empty() || diagnostics_.size() > before) return;
  auto own = read_defaults(body, nullptr, Texts::filled);
  if (from) inherit(own, *from);
  defaults.has_settings |= own.has_settings;
  for (const auto& [key, value] : body.members) take(own, key.scalar, defaults);
}

void StepReader::fill(const ReadStep& step, const Parameters& values, StepSpec& spec) {
  if (budget_.is_spent()) return;
  const auto before = diagnostics_.size();
  const auto body = filled_members(*step.body, values);
  const Defaults& pipeline = step.scope->defaults;
  if (!body.members.empty() && diagnostics_.size() == before) {
    auto own = read_defaults(body, &pipeline, Texts::filled);
    if (const auto* written = body.find("settings"))
      settings::check_against_pipeline(pipeline.settings, own.settings, *written, diagnostics_);
    const auto publish_to = own.publish_to;
    const auto wait = own.wait;
    const auto services = own.services;
    const auto nodes = own.nodes;
    inherit(own, pipeline);
    for (const auto& [key, value] : body.members) {
      take(own, key.scalar, spec);
      if (key.scalar == "publish_to") spec.publish_to = publish_to;
      if (key.scalar == "wait") spec.wait = wait;
      if (key.scalar == "services") spec.services = services;
      if (key.scalar == "nodes") spec.nodes = nodes;
    }
    if (const auto* written = body.find("services")) check_services(spec, *written, diagnostics_);
    if (const auto* written = step.body->find("nodes"); written && spec.nodes)
      check_nodes(spec, *written, diagnostics_);
    if (const auto* retry = body.find("retry"))
      check_retry(spec.retry, *retry, &*std::as_const(spec.settings), spec.stalled_after.optional(),
                  diagnostics_);
    gpu::check_instance_type(std::as_const(spec.settings)->resources, body, step.key->span,
                             diagnostics_);
  }
  for (const auto i : step.inputs_to_fill) {
    auto& input = spec.inputs[i];
    const auto source =
        filled(*step.body->find("inputs")->find(input.name), values, budget_, diagnostics_);
    if (diagnostics_.size() > before) return;
    if (!is_data(source))
      settings::report(diagnostics_, "wrong-type",
                       "'" + source.scalar.substr(0, 100) + "' is not a path or an address",
                       source.span,
                       {"with `${params.X}`, an input is data from outside of the pipeline: "
                        "`./data/${params.X}`"});
    else if (auto data = read_data(input.name, source, folder_, diagnostics_))
      input.data = std::move(*data);
  }
}

}  // namespace pipeline::spec
