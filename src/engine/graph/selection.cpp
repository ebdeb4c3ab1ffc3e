#include "engine/graph/selection.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/diagnostic.hpp"
#include "model/graph.hpp"
#include "model/instance.hpp"
#include "model/step_needs.hpp"

namespace pipeline::engine {
namespace {

std::unordered_map<std::string_view, std::size_t> positions_by_name(const PipelineSpec& pipeline) {
  std::unordered_map<std::string_view, std::size_t> positions;
  positions.reserve(pipeline.steps.size());
  for (std::size_t i = 0; i < pipeline.steps.size(); ++i)
    positions.emplace(pipeline.steps[i].name, i);
  return positions;
}

/// Lets the head of a loop wait for every step outside of the loop that its steps need. The other
/// steps of the loop wait for the head alone, because they end with it.
void wait_together(const PipelineSpec& pipeline, const std::vector<std::size_t>& selected,
                   const std::unordered_map<std::string_view, std::uint32_t>& position,
                   std::vector<std::vector<std::uint32_t>>& needs) {
  const auto group_of = [&](std::uint32_t i) -> std::string_view {
    const auto& repeat = pipeline.steps[selected[i]].repeat;
    return repeat ? std::string_view(repeat->of) : std::string_view();
  };
  for (std::uint32_t i = 0; i < selected.size(); ++i) {
    const auto group = group_of(i);
    if (group.empty()) continue;
    std::erase_if(needs[i], [&](auto need) { return group_of(need) == group; });
    const auto head = position.at(group);
    if (i == head) continue;
    std::ranges::copy(needs[i], std::back_inserter(needs[head]));
    needs[i] = {head};
  }
}

/// Adds to the needs of a step everything that these steps need, directly or not.
void add_ancestors(std::uint32_t step, std::vector<std::vector<std::uint32_t>>& needs) {
  std::vector<bool> seen(needs.size());
  auto all = needs[step];
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (seen[all[k]]) continue;
    seen[all[k]] = true;
    // Pushed singly, because g++ 14 warns of an overflow where the range is inserted.
    for (const auto need : needs[all[k]]) all.push_back(need);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  needs[step] = std::move(all);
}

}  // namespace

std::vector<std::size_t> steps_called(const PipelineSpec& pipeline, const std::string& name) {
  auto found = model::pick(name, pipeline.steps.size(), [&](std::size_t i) {
    const auto& step = pipeline.steps[i];
    return model::Candidate{step.name, [&step](const std::string& axis) -> const nlohmann::json* {
                              if (!step.instance) return nullptr;
                              const auto& axes = step.instance->axes;
                              const bool is_axis = std::ranges::find(axes, axis) != axes.end();
                              return is_axis ? &*step.axis_value(axis) : nullptr;
                            }};
  });
  if (!found.empty()) return found;
  for (const auto& step : pipeline.steps)
    if ((step.matrix || step.repeat) &&
        (name.starts_with(step.name + "[") || name.starts_with(step.name + ".")))
      throw core::InputError("the steps of '" + step.name + "' are not known before the run " +
                                 (step.matrix ? "has made the values of its matrix" : "makes them"),
                             "'" + step.name + "' means all of them");
  std::vector<std::string> names;
  for (const auto& step : pipeline.steps) names.push_back(step.name);
  throw core::InputError("pipeline '" + pipeline.name + "' has no step '" + name + "'",
                         model::suggest_step(name, names));
}

std::vector<std::size_t> select_steps(const PipelineSpec& pipeline, const std::string& only_step) {
  std::vector<std::size_t> selected;
  if (only_step.empty()) {
    for (std::size_t i = 0; i < pipeline.steps.size(); ++i) selected.push_back(i);
    return selected;
  }
  const auto positions = positions_by_name(pipeline);
  std::vector<bool> wanted(pipeline.steps.size());
  std::vector<std::size_t> open = steps_called(pipeline, only_step);
  const auto groups = model::repeated_together(pipeline.steps);
  while (!open.empty()) {
    const auto i = open.back();
    open.pop_back();
    if (wanted[i]) continue;
    wanted[i] = true;
    model::for_each_need(pipeline.steps[i],
                         [&](const std::string& name) { open.push_back(positions.at(name)); });
    if (pipeline.steps[i].repeat)  // All steps of a loop run together.
      std::ranges::copy(groups.at(pipeline.steps[i].repeat->of), std::back_inserter(open));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) selected.push_back(i);
  return selected;
}

std::set<std::string_view> forced_steps(const PipelineSpec& pipeline,
                                        const std::vector<std::string>& force,
                                        const std::vector<std::string>& from) {
  std::set<std::string_view> forced;
  std::vector<std::size_t> open;
  for (const auto& name : from)
    std::ranges::copy(steps_called(pipeline, name), std::back_inserter(open));
  // The graph stays empty if `from` names no step, because making that of a large pipeline takes
  // a while.
  const model::Graph graph(open.empty() ? std::vector<std::vector<model::StepIndex>>()
                                        : needs_of(pipeline, select_steps(pipeline, {})));
  while (!open.empty()) {
    const auto i = open.back();
    open.pop_back();
    if (!forced.insert(pipeline.steps[i].name).second) continue;
    const auto dependents = graph.needed_by(static_cast<model::StepIndex>(i));
    open.insert(open.end(), dependents.begin(), dependents.end());
  }
  for (const auto& name : force)
    for (const auto k : steps_called(pipeline, name)) forced.insert(pipeline.steps[k].name);
  return forced;
}

std::vector<std::vector<std::uint32_t>> needs_of(const PipelineSpec& pipeline,
                                                 const std::vector<std::size_t>& selected) {
  std::unordered_map<std::string_view, std::uint32_t> position;
  position.reserve(selected.size());
  for (std::uint32_t i = 0; i < selected.size(); ++i)
    position.emplace(pipeline.steps[selected[i]].name, i);
  std::vector<std::vector<std::uint32_t>> needs(selected.size());
  for (std::size_t i = 0; i < selected.size(); ++i) {
    model::for_each_need(pipeline.steps[selected[i]],
                         [&](const std::string& name) { needs[i].push_back(position.at(name)); });
  }
  wait_together(pipeline, selected, position, needs);
  for (std::uint32_t i = 0; i < selected.size(); ++i)
    if (pipeline.steps[selected[i]].run_on != RunOn::success) add_ancestors(i, needs);
  return needs;
}

}  // namespace pipeline::engine
