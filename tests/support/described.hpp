/// @file
/// A pipeline's spec as JSON, for comparisons.
#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <pipeline/spec.hpp>

#include "settings/settings.hpp"
#include "spec/nodes_reader.hpp"
#include "spec/services_reader.hpp"

namespace pipeline {

/// Returns all of a spec that a plan depends on.
inline nlohmann::json described(const PipelineSpec& pipeline) {
  using nlohmann::json;
  json all{{"name", pipeline.name},
           {"description", pipeline.description},
           {"parameters", pipeline.parameters},
           {"execution_mode", static_cast<int>(pipeline.execution_mode)},
           {"tags", pipeline.tags},
           {"headline", pipeline.headline}};
  for (const auto& hook : pipeline.notify)
    all["notify"].push_back({hook.url, hook.url_variable, hook.on.size()});
  for (const auto& step : pipeline.steps) {
    json entry{{"name", step.name},
               {"description", *step.description},
               {"shell", step.command.shell},
               {"interpreter", step.command.interpreter},
               {"parameters", step.parameters},
               {"after", step.after},
               {"when", step.when ? step.when->text : ""},
               {"run_on", static_cast<int>(step.run_on)},
               {"code", step.code->items()},
               {"environment", json::object()},
               {"settings", settings::to_json(step.settings)},
               {"retry", settings::to_json(step.retry)},
               {"timeout", step.timeout.value_or(Duration{}).count()},
               {"stalled_after", step.stalled_after.value_or(Duration{}).count()},
               {"cache", step.cache},
               {"cache_until", *step.cache_until},
               {"cache_max_age", step.cache_max_age.value_or(Duration{}).count()},
               {"orchestrator", *step.orchestrator},
               {"wait", *step.wait},
               {"allow_failure", step.allow_failure},
               {"max_parallel", step.max_parallel},
               {"uses", *step.uses},
               {"services", spec::services_document(step.services)},
               {"nodes", spec::nodes_document(step.nodes)},
               {"publish_to", step.publish_to->string()},
               {"checkpoint", step.checkpoint},
               {"version", *step.version},
               {"publish", *step.publish}};
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
      entry["outputs"].push_back(
          {output.name, output.file_name, output.metrics, output.temp, output.from_all_nodes});
    for (const auto& input : step.inputs) {
      for (const auto& source : input.sources)
        entry["inputs"].push_back({input.name, input.gathered, source.step, source.output});
      if (input.data)
        entry["data"].push_back({input.name, input.data->path.string(), input.data->url,
                                 input.data->sha256, input.data->version, input.data->artifact,
                                 input.data->optional});
      if (input.at_least) entry["at_least"].push_back({input.name, *input.at_least});
      if (input.then) entry["then"].push_back({input.name, input.then->step, input.then->output});
    }
    if (step.matrix)
      for (const auto& axis : step.matrix->axes)
        entry["matrix"].push_back({axis.name, axis.values.size(), axis.items.has_value()});
    if (step.repeat)
      entry["repeat"] = {step.repeat->of, step.repeat->max,
                         step.repeat->until ? step.repeat->until->text : ""};
    all["steps"].push_back(std::move(entry));
  }
  return all;
}

}  // namespace pipeline
