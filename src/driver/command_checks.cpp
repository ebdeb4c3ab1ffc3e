#include "driver/command_checks.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "model/findings.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::driver {
namespace {

/// Names of images, and parts of tags, whose `sh` is busybox or bash. In Debian and Ubuntu it is
/// dash, which has no pipefail up to 0.5.12.
constexpr std::array images_with_pipefail{"alpine",    "busybox", "fedora",    "rocky",
                                          "almalinux", "centos",  "ubi",       "amazonlinux",
                                          "suse",      "oracle",  "archlinux", "bash"};

bool has_pipefail(const DockerSettings& settings) {
  const auto image = settings.parent_image.value_or("");
  return std::ranges::any_of(images_with_pipefail,
                             [&](const char* name) { return image.find(name) != image.npos; });
}

/// Returns true if the value is an item of a list in the parameter: `matrix: {x: ${params.X[*]}}`.
bool has_item(const nlohmann::json& parameter, const nlohmann::json& value) {
  if (!parameter.is_structured()) return false;
  const auto* text = value.get_ptr<const std::string*>();
  return std::ranges::any_of(parameter, [&](const nlohmann::json& item) {
    return (parameter.is_array() && (item == value || (text && item.dump() == *text))) ||
           has_item(item, value);
  });
}

/// Adds the parameters that the condition depends on.
void take_parameters(const Condition& condition, std::set<std::string>& taken) {
  for (const auto& [name, value] : condition.parameters)
    taken.emplace(core::split(name, '.').at(1));  // `params.X`, `params.X.MEMBER`
}

bool is_sibling(const StepSpec* before, const StepSpec& step) {
  return before && before->instance && step.instance && before->instance->of == step.instance->of;
}

}  // namespace

std::vector<core::Diagnostic> check_scripts(const std::vector<const StepSpec*>& steps,
                                            spec::CodeResolver& resolver) {
  model::Findings found;
  const StepSpec* before = nullptr;
  for (const auto* step : steps) {
    if (is_sibling(std::exchange(before, step), *step)) continue;
    for (const auto& script : resolver.missing_scripts(*step))
      found.add({&before, 1}, {"missing-file",
                               "there is no file '" + script + "' in the pipeline's folder",
                               {},
                               {},
                               core::did_you_mean(script, resolver.all_files()),
                               core::Severity::warning});
  }
  return found.all();
}

std::vector<core::Diagnostic> check_commands(const PipelineSpec& pipeline,
                                             spec::CodeResolver& resolver) {
  std::vector<const StepSpec*> steps;
  for (const auto& step : pipeline.steps) steps.push_back(&step);
  auto all = check_scripts(steps, resolver);
  model::Findings found;
  std::set<std::string> taken;
  const StepSpec* before = nullptr;
  for (const auto& step : pipeline.steps) {
    for (const auto& [name, value] : step.parameters) taken.insert(name);
    if (step.when) take_parameters(*step.when, taken);
    if (step.repeat && step.repeat->until) take_parameters(*step.repeat->until, taken);
    if (is_sibling(std::exchange(before, &step), step)) continue;
    if (step.instance)
      for (const auto& [name, parameter] : pipeline.parameters)
        for (const auto& [axis, value] : step.instance->values)
          if (has_item(*parameter, *value)) taken.insert(name);
    if (step.command.interpreter.empty() && orchestrators::has_pipe(step.command) &&
        !has_pipefail(step.settings->docker))
      found.add({&before, 1}, {"pipe-failure",
                               "only the last command of a pipe fails the step where `sh` has no "
                               "pipefail, as in Debian",
                               {},
                               {},
                               "with `shell: bash` each of them does, if the image has bash",
                               core::Severity::warning});
  }
  std::ranges::move(found.all(), std::back_inserter(all));
  for (const auto& [name, value] : pipeline.parameters)
    if (!taken.contains(name))
      all.push_back({"unused-parameter",
                     "no step takes the parameter '" + name + "'",
                     {},
                     {},
                     "name it in a command as ${params." + name + "}, or write `parameters: [" +
                         name + "]` in a step whose program reads PIPE_PARAM_" + name,
                     core::Severity::warning});
  return all;
}

}  // namespace pipeline::driver
