/// @file
/// Shared parts of the tests of declared pipelines: a spec as JSON, and the same from YAML.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "dsl/builder.hpp"
#include "settings/settings.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline {

/// All of a spec that a plan depends on.
inline nlohmann::json described(const PipelineSpec& pipeline) {
  using nlohmann::json;
  json all{{"name", pipeline.name},
           {"description", pipeline.description},
           {"parameters", pipeline.parameters},
           {"execution_mode", static_cast<int>(pipeline.execution_mode)},
           {"tags", pipeline.tags},
           {"headline", pipeline.headline}};
  for (const auto& step : pipeline.steps) {
    json entry{{"name", step.name},
               {"description", step.description},
               {"shell", step.command.shell},
               {"interpreter", step.command.interpreter},
               {"parameters", step.parameters},
               {"after", step.after},
               {"when", step.when ? step.when->text : ""},
               {"run_on", static_cast<int>(step.run_on)},
               {"code", step.code.items()},
               {"environment", json::object()},
               {"settings", settings::to_json(step.settings)},
               {"retry", settings::to_json(step.retry)},
               {"timeout", step.timeout.value_or(Duration{}).count()},
               {"stalled_after", step.stalled_after.value_or(Duration{}).count()},
               {"cache", step.cache},
               {"publish", step.publish}};
    for (const auto& argument : step.command.arguments)
      for (const auto& part : argument.parts)
        entry["command"].push_back(
            part.index() == 0 ? std::get<0>(part)
                              : std::to_string(static_cast<int>(std::get<1>(part).placeholder)) +
                                    std::get<1>(part).name);
    for (const auto& [name, value] : step.environment)
      entry["environment"][name] = value ? json(*value) : json();
    for (const auto& secret : step.secrets)
      entry["secrets"].push_back({secret.name, secret.file.value_or("")});
    for (const auto& output : step.outputs)
      entry["outputs"].push_back({output.name, output.file_name});
    for (const auto& input : step.inputs) {
      for (const auto& source : input.sources)
        entry["inputs"].push_back({input.name, input.gathered, source.step, source.output});
      if (input.data)
        entry["data"].push_back({input.name, input.data->path.string(), input.data->url,
                                 input.data->sha256, input.data->version});
      if (input.then) entry["then"].push_back({input.name, input.then->step, input.then->output});
    }
    if (step.repeat)
      entry["repeat"] = {step.repeat->of, step.repeat->max,
                         step.repeat->until ? step.repeat->until->text : ""};
    all["steps"].push_back(std::move(entry));
  }
  return all;
}

class Builder : public testing::Test {
 protected:
  PipelineSpec from_yaml(const std::string& text) {
    return spec::parse(text, folder_.path() / "pipeline.yaml");
  }
  std::string error_of(const Pipeline& pipeline,
                       const std::map<std::string, std::string>& parameters = {}) {
    try {
      dsl::build(pipeline, parameters);
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no error";
  }
  core::TemporaryFolder folder_;
};

}  // namespace pipeline
