#include "driver/recorded_steps.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/text.hpp"
#include "model/instance.hpp"

namespace pipeline::driver {
namespace {

/// Returns the indices of the steps called `name`, see recorded_steps().
std::vector<std::size_t> called(const std::vector<store::StepRecord>& steps,
                                const std::string& name) {
  std::vector<nlohmann::json> parameters(steps.size());
  return model::pick(name, steps.size(), [&](std::size_t i) {
    return model::Candidate{steps[i].name,
                            [&, i](const std::string& axis) -> const nlohmann::json* {
                              if (parameters[i].is_null())
                                parameters[i] = core::parse_json(steps[i].parameters);
                              const auto value = parameters[i].find(axis);
                              return value == parameters[i].end() ? nullptr : &*value;
                            }};
  });
}

}  // namespace

std::vector<store::StepRecord> recorded_steps(store::RunStore& store, const store::RunRecord& run,
                                              const std::string& name) {
  auto steps = store.runs().steps(run.id);
  std::vector<store::StepRecord> found;
  for (const auto i : called(steps, name)) found.push_back(std::move(steps[i]));
  return found;
}

std::vector<store::StepRecord>::const_iterator last_round(
    const std::vector<store::StepRecord>& steps, const std::string& name) {
  auto last = steps.end();
  unsigned highest = 0;
  for (auto step = steps.begin(); step != steps.end(); ++step)
    if (const auto round = model::round_of(step->name, name); round && *round >= highest) {
      highest = *round;
      last = step;
    }
  return last;
}

store::StepRecord recorded_step(store::RunStore& store, const store::RunRecord& run,
                                const std::string& name) {
  constexpr std::size_t max_shown = 6;
  const auto steps = store.runs().steps(run.id);
  const auto found = called(steps, name);
  if (found.size() == 1) return steps[found[0]];
  if (const auto last = last_round(steps, name); last != steps.end()) return *last;
  if (found.empty()) {
    std::vector<std::string> names;
    for (const auto& step : steps) names.push_back(step.name);
    throw core::InputError("run " + run.id + " has no step '" + name + "'",
                           model::suggest_step(name, names));
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(found.size(), max_shown); ++i)
    list += (i ? ", " : "") + steps[found[i]].name;
  if (found.size() > max_shown) list += ", ...";
  throw core::InputError("'" + name + "' is " + core::counted(found.size(), "step") + " in run " +
                             run.id + ": " + list,
                         "name one of them, by its values as in `STEP[AXIS=VALUE]` or by its "
                         "number as in `STEP[0]`");
}

}  // namespace pipeline::driver
