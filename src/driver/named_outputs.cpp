#include "driver/named_outputs.hpp"

#include <algorithm>
#include <set>

#include "core/diagnostic.hpp"
#include "driver/recorded_steps.hpp"
#include "model/instance.hpp"

namespace pipeline::driver {

std::vector<NamedOutput> outputs_named(store::RunStore& store, const store::RunRecord& run,
                                       const std::vector<store::StepRecord>& steps,
                                       const std::string& wanted) {
  const auto bracket = wanted.rfind(']');
  const auto dot = bracket == std::string::npos ? std::string::npos : wanted.find('.', bracket);
  const auto wanted_output = dot == std::string::npos ? std::string() : wanted.substr(dot + 1);
  std::set<std::string> wanted_steps;
  for (const auto& step : recorded_steps(store, run, wanted.substr(0, dot)))
    wanted_steps.insert(step.name);

  // If the step `fit` is repeated, `fit.state` is the output of its last round.
  const auto output_dot = std::min(wanted.rfind('.'), wanted.size());
  const auto last = last_round(steps, wanted.substr(0, output_dot));
  const auto of_last_round = last == steps.end() ? "" : last->name + wanted.substr(output_dot);

  std::vector<NamedOutput> found;
  std::vector<std::string> known;
  for (const auto& step : steps) {
    known.push_back(step.name);
    for (const auto& output : step.outputs) {
      auto name = step.name + "." + output.name;
      known.push_back(name);
      const bool is_of_step = wanted_steps.contains(step.name) &&
                              (wanted_output.empty() || wanted_output == output.name);
      if (wanted.empty() || is_of_step || wanted == name || of_last_round == name)
        found.push_back({std::move(name), step, output});
    }
  }
  const bool is_known = !wanted_steps.empty() || std::ranges::find(known, wanted) != known.end();
  if (!wanted.empty() && found.empty() && !is_known) {
    auto meant = wanted.find('[') == std::string::npos ? core::did_you_mean(wanted, known) : "";
    if (meant.empty()) {
      std::vector<std::string> names;
      for (const auto& step : steps) names.push_back(step.name);
      meant = model::suggest_step(wanted.substr(0, wanted.rfind('.')), names);
    }
    throw core::InputError("run " + run.id + " has no step or output '" + wanted + "'", meant);
  }
  return found;
}

}  // namespace pipeline::driver
