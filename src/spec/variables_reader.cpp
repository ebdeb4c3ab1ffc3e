#include "spec/variables_reader.hpp"

#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "settings/decode.hpp"
#include "settings/reserved_variables.hpp"
#include "spec/output_reader.hpp"
#include "spec/parameter_value.hpp"
#include "spec/user_files.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

void take_parameter(const core::Value& name, Defaults& into, const Defaults& pipeline_defaults,
                    settings::Diagnostics& diagnostics) {
  if (pipeline_defaults.parameters.contains(name.scalar)) {
    into.taken_parameters.insert(name.scalar);
    return;
  }
  Strings known;
  for (const auto& [each, value] : pipeline_defaults.parameters) known.push_back(each);
  settings::report(
      diagnostics, "unknown-parameter",
      "the pipeline has no parameter '" + core::printable(name.scalar.substr(0, 60)) + "'",
      name.span, {"a parameter that a step names without a value is taken from the pipeline"},
      core::did_you_mean(name.scalar, known));
}

}  // namespace

void read_parameters(const core::Value& value, Defaults& into, const Defaults* pipeline_defaults,
                     settings::Diagnostics& diagnostics) {
  if (pipeline_defaults && value.kind == core::Value::Kind::list) {
    for (const core::Value& item : value.items)
      if (item.kind == core::Value::Kind::scalar)
        take_parameter(item, into, *pipeline_defaults, diagnostics);
      else
        settings::report(
            diagnostics, "wrong-type",
            "each of 'parameters' must be the name of a parameter of the pipeline, not " +
                settings::describe(item),
            item.span);
    return;
  }
  if (pipeline_defaults && value.kind == core::Value::Kind::scalar && value.scalar == "all") {
    for (const auto& [name, each] : pipeline_defaults->parameters)
      into.taken_parameters.insert(name);
    return;
  }
  if (pipeline_defaults && value.kind != core::Value::Kind::map)
    return settings::report_type(
        diagnostics, "parameters",
        "a map of names to values, a list of names of the pipeline's parameters, or `all`", value);
  if (!settings::expect_map("parameters", value, diagnostics)) return;
  for (const auto& [name, member] : value.members) {
    if (pipeline_defaults && member.kind == core::Value::Kind::null) {
      take_parameter(name, into, *pipeline_defaults, diagnostics);
    } else if (!slot_name.accepts(name.scalar)) {
      settings::report(diagnostics, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be a parameter's name",
                       name.span, {std::string("it must be ") + slot_name.expected});
    } else {
      // A wrong parameter is declared all the same, so that references to it are not errors, too.
      auto json = read_parameter(name.scalar, member, diagnostics);
      into.parameters.emplace(name.scalar, json ? std::move(*json) : Json(""));
    }
  }
}

void read_environment(const core::Value& value, Defaults& into,
                      settings::Diagnostics& diagnostics) {
  const auto add = [&](const core::Value& name, std::optional<std::string> content) {
    if (!settings::formats::variable.accepts(name.scalar))
      settings::report(diagnostics, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be a variable's name", name.span,
                       {std::string("it must be ") + settings::formats::variable.expected});
    else if (settings::is_reserved_variable(name.scalar))
      settings::report(diagnostics, "reserved-name", "'" + name.scalar + "' is set by pipe itself",
                       name.span);
    else
      into.environment.emplace(name.scalar, std::move(content));
  };
  if (value.kind == core::Value::Kind::list) {
    if (const auto names =
            settings::read_texts("environment", value, settings::formats::line, diagnostics);
        names && names->size() == value.items.size())
      for (const core::Value& item : value.items) add(item, std::nullopt);
  } else if (value.kind == core::Value::Kind::map) {
    for (const auto& [name, member] : value.members) {
      if (member.kind == core::Value::Kind::null)
        add(name, std::nullopt);
      else
        add(name, settings::read_text("environment." + name.scalar, member, settings::formats::text,
                                      diagnostics)
                      .value_or(""));
    }
  } else {
    settings::report_type(
        diagnostics, "environment",
        "a map of names to values, or a list of names whose values come from the caller", value);
  }
}

void read_secrets(const core::Value& value, Defaults& into, const fs::path& root,
                  settings::Diagnostics& diagnostics) {
  static const Strings keys{"name", "file"};
  if (value.kind != core::Value::Kind::list)
    return settings::report_type(diagnostics, "secrets", "a list of names, or of {name, file}",
                                 value);
  for (const core::Value& item : value.items) {
    const core::Value* name = &item;
    SecretSpec secret;
    if (item.kind == core::Value::Kind::map) {
      settings::report_unknown_keys(item, keys, "a secret", diagnostics);
      name = item.find("name");
      if (!name) {
        settings::report(diagnostics, "missing-key", "this secret has no 'name'", item.span);
        continue;
      }
      if (const core::Value* file = item.find("file"))
        if (const auto path =
                settings::read_text("file", *file, settings::formats::path, diagnostics))
          secret.file = user_path(*path, root);
    }
    if (name->kind != core::Value::Kind::scalar ||
        !settings::formats::variable.accepts(name->scalar))
      settings::report(diagnostics, "wrong-type",
                       std::string("a secret's name must be ") +
                           settings::formats::variable.expected + ", not " +
                           settings::describe(*name),
                       name->span);
    else if (settings::is_reserved_variable(name->scalar))
      settings::report(diagnostics, "reserved-name", "'" + name->scalar + "' is set by pipe itself",
                       name->span);
    else if (std::any_of(into.secrets.begin(), into.secrets.end(),
                         [&](const SecretSpec& other) { return other.name == name->scalar; }))
      settings::report(diagnostics, "duplicate-key",
                       "the secret '" + name->scalar + "' is listed twice", name->span);
    else {
      secret.name = name->scalar;
      into.secrets.push_back(std::move(secret));
    }
  }
}

void check_variables(const ReadStep& step, settings::Diagnostics& diagnostics) {
  const StepSpec& spec = step.spec;
  for (const SecretSpec& secret : spec.secrets)
    if (spec.environment.contains(secret.name))
      settings::report(diagnostics, "contradiction",
                       "'" + secret.name + "' of step '" + spec.name +
                           "' is both under 'environment' and under 'secrets'",
                       step.key->span, {"values under 'environment' are stored and shown"});
  std::unordered_map<std::string, std::string> variables;
  const auto add = [&](std::string_view prefix, const std::string& name) {
    const auto [other, is_new] = variables.emplace(core::variable_name(prefix, name), name);
    if (!is_new && other->second != name)
      settings::report(diagnostics, "contradiction",
                       "'" + other->second + "' and '" + name + "' of step '" + spec.name +
                           "' both become the variable " + other->first,
                       step.key->span);
  };
  // Only names with a `-` or a capital letter can have the same variable as another name.
  const auto may_collide = [](const auto& names, auto&& name_of) {
    return names.size() > 1 && std::any_of(names.begin(), names.end(), [&](const auto& each) {
             const std::string& name = name_of(each);
             return std::any_of(name.begin(), name.end(),
                                [](char c) { return c == '-' || (c >= 'A' && c <= 'Z'); });
           });
  };
  const auto slot = [](const auto& each) -> const std::string& { return each.name; };
  const auto key = [](const auto& each) -> const std::string& { return each.first; };
  if (may_collide(spec.inputs, slot))
    for (const auto& input : spec.inputs) add("PIPE_INPUT_", input.name);
  if (may_collide(spec.outputs, slot))
    for (const auto& output : spec.outputs) add("PIPE_OUTPUT_", output.name);
  if (may_collide(spec.parameters, key))
    for (const auto& [name, value] : spec.parameters) add("PIPE_PARAM_", name);
}

}  // namespace pipeline::spec
