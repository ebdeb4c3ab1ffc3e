/// @file
/// Fuzzes ECS task definitions: any text is read, or is an InputError, and an imported definition
/// that is written as YAML is read as the same pipeline.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "ecs_import/task_definition.hpp"
#include "settings/settings.hpp"
#include "spec/json_text.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/yaml_writer.hpp"
#include "yaml/document.hpp"

namespace {

using namespace pipeline;

/// Returns all parts of a pipeline on which a run depends.
nlohmann::json content(const PipelineSpec& pipeline) {
  nlohmann::json steps = nlohmann::json::array();
  for (const auto& step : pipeline.steps) {
    nlohmann::json command = nlohmann::json::array();
    for (const auto& argument : step.command.arguments)
      for (const auto& part : argument.parts)
        command.push_back(std::holds_alternative<std::string>(part) ? std::get<std::string>(part)
                                                                    : "hole");
    nlohmann::json environment = nlohmann::json::object();
    for (const auto& [name, value] : step.environment) environment[name] = value.value_or("");
    steps.push_back(
        {step.name, command, environment, step.after, settings::to_json(step.settings)});
  }
  return {pipeline.name, pipeline.tags, static_cast<int>(pipeline.execution_mode), steps};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  PipelineSpec direct;
  try {
    direct = spec::parse(text, "/nowhere/task.json");
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
    return 0;
  }
  settings::Diagnostics diagnostics, notices;
  const auto root = yaml::parse_yaml(spec::json_as_yaml(text), diagnostics);
  if (!root || !ecs_import::is_task_definition(*root)) return 0;
  try {
    const auto yaml = spec::to_yaml(ecs_import::pipeline_of(*root, diagnostics, notices));
    if (content(direct) != content(spec::parse(yaml, "/nowhere/pipeline.yaml"))) __builtin_trap();
  } catch (const core::InputError&) {
    __builtin_trap();
  }
  return 0;
}
