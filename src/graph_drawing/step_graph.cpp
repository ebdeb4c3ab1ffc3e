#include "graph_drawing/step_graph.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/text.hpp"

namespace pipeline::graph_drawing {
namespace {

const std::string& node_name(const StepSpec& step) {
  return step.instance ? *step.instance->of : step.name;
}

unsigned rounds_of(const StepSpec& step, const PipelineSpec& pipeline) {
  if (!step.repeat) return 0;
  return std::ranges::find(pipeline.steps, step.repeat->of, &StepSpec::name)->repeat->max;
}

}  // namespace

StepGraph graph_of(const PipelineSpec& pipeline) {
  StepGraph graph{pipeline.name, {}, {}};
  std::map<std::string, std::size_t> positions;
  std::map<std::string, std::string> node_of;
  for (const auto& step : pipeline.steps) {
    const auto& name = node_name(step);
    node_of.emplace(step.name, name);
    const auto [position, is_new] = positions.emplace(name, graph.nodes.size());
    if (is_new)
      graph.nodes.push_back({name, 0, rounds_of(step, pipeline), step.when.has_value(),
                             step.run_on == RunOn::failure  ? "failure"
                             : step.run_on == RunOn::always ? "always"
                                                            : ""});
    if (step.instance) ++graph.nodes[position->second].instances;
  }
  std::set<GraphEdge> seen;
  const auto add = [&](GraphEdge edge) {
    if (seen.insert(edge).second) graph.edges.push_back(std::move(edge));
  };
  for (const auto& step : pipeline.steps) {
    const auto& to = node_name(step);
    for (const auto& input : step.inputs) {
      for (const auto& source : input.sources)
        add({.from = node_of.at(source.step), .to = to, .label = source.output, .is_data = true});
      if (const auto& next = input.then)
        add({.from = node_of.at(next->step),
             .to = to,
             .label = "next " + next->output,
             .is_data = true,
             .is_next = true});
    }
    if (step.when)
      for (const auto& [name, value] : step.when->outputs)
        add({.from = node_of.at(value.source.step), .to = to, .label = "when"});
    if (step.matrix)
      for (const auto& axis : step.matrix->axes)
        if (axis.items)
          add({.from = node_of.at(axis.items->source.step),
               .to = to,
               .label = "each of " + axis.items->source.output,
               .is_data = true});
    for (const auto& other : step.after) add({.from = node_of.at(other), .to = to, .label = {}});
  }
  return graph;
}

std::string node_details(const GraphNode& node) {
  std::string text = node.instances ? core::counted(node.instances, "instance") : "";
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (node.rounds) add("up to " + core::counted(node.rounds, "round"));
  if (!node.run_on.empty()) add("run_on: " + node.run_on);
  return text;
}

std::string node_label(const GraphNode& node) {
  std::string label = node.name;
  if (node.instances) label += " (" + core::counted(node.instances, "instance") + ")";
  if (node.rounds) label += ", up to " + core::counted(node.rounds, "round");
  if (!node.run_on.empty()) label += ", run_on: " + node.run_on;
  return label;
}

}  // namespace pipeline::graph_drawing
