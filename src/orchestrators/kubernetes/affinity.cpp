#include "orchestrators/kubernetes/affinity.hpp"

#include <utility>

#include "core/diagnostic.hpp"

namespace pipeline {

std::vector<gpu::NodeTerm> node_terms(const StepSpec& step) {
  const auto& resources = step.settings.resources;
  gpu::Placement all;
  all.kind = gpu::Placement::Kind::all_of;
  for (const auto& text : resources.placement_constraints.items()) {
    auto parsed = gpu::parse_placement(text);
    if (const auto* error = std::get_if<gpu::PlacementError>(&parsed))
      throw InputError("step '" + step.name + "': the placement constraint `" + text + "`: " + error->message, error->suggestion);
    all.operands.push_back(std::get<gpu::Placement>(std::move(parsed)));
  }
  std::vector<gpu::NodeTerm> terms;
  if (!all.operands.empty()) {
    auto made = gpu::node_selector_terms(all);
    if (const auto* why = std::get_if<std::string>(&made))
      throw InputError("step '" + step.name + "': a cluster cannot honour its placement constraints: " + *why);
    terms = std::get<std::vector<gpu::NodeTerm>>(std::move(made));
  }
  if (resources.instance_type) {
    if (terms.empty()) terms.emplace_back();
    for (auto& term : terms) term.push_back({"node.kubernetes.io/instance-type", "In", {*resources.instance_type}});
  }
  return terms;
}

}  // namespace pipeline
