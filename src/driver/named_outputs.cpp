#include "driver/named_outputs.hpp"

#include <algorithm>
#include <set>

#include "core/diagnostic.hpp"
#include "driver/recorded_steps.hpp"
#include "model/instance.hpp"

namespace pipeline::driver {
namespace {

/// Returns the position of the dot after a selector in brackets; npos if there is none.
std::size_t dot_after_selector(const std::string& wanted) {
  const auto bracket = wanted.rfind(']');
  return bracket == std::string::npos ? std::string::npos : wanted.find('.', bracket);
}

}  // namespace

std::vector<NamedOutput> find_outputs(store::RunStore& store, const store::RunRecord& run,
                                      const std::vector<store::StepRecord>& steps,
                                      const std::string& wanted) {
  const auto dot = dot_after_selector(wanted);
  const auto wanted_output = dot == std::string::npos ? std::string() : wanted.substr(dot + 1);
  std::set<std::string> wanted_steps;
  for (const auto& step : recorded_steps(store, run, wanted.substr(0, dot)))
    wanted_steps.insert(step.name);

  // If the step `fit` is repeated, `fit.state` is the output of its last round.
  const auto output_dot = std::min(wanted.rfind('.'), wanted.size());
  const auto last = last_round(steps, wanted.substr(0, output_dot));
  const auto of_last_round = last == steps.end() ? "" : last->name + wanted.substr(output_dot);

  std::vector<NamedOutput> found;
  for (const auto& step : steps)
    for (const auto& output : step.outputs) {
      auto name = step.name + "." + output.name;
      const bool is_of_step = wanted_steps.contains(step.name) &&
                              (wanted_output.empty() || wanted_output == output.name);
      if (wanted.empty() || is_of_step || wanted == name || of_last_round == name)
        found.push_back({std::move(name), step, output});
    }
  return found;
}

std::vector<NamedOutput> outputs_named(store::RunStore& store, const store::RunRecord& run,
                                       const std::vector<store::StepRecord>& steps,
                                       const std::string& wanted) {
  auto found = find_outputs(store, run, steps, wanted);
  if (wanted.empty() || !found.empty()) return found;
  // The step that is named may have no outputs.
  if (!recorded_steps(store, run, wanted.substr(0, dot_after_selector(wanted))).empty()) return {};
  std::vector<std::string> names, known;
  for (const auto& step : steps) {
    names.push_back(step.name);
    known.push_back(step.name);
    for (const auto& output : step.outputs) known.push_back(step.name + "." + output.name);
  }
  auto meant = wanted.find('[') == std::string::npos ? core::did_you_mean(wanted, known) : "";
  if (meant.empty()) meant = model::suggest_step(wanted.substr(0, wanted.rfind('.')), names);
  throw core::InputError("run " + run.id + " has no step or output '" + wanted + "'", meant);
}

}  // namespace pipeline::driver
