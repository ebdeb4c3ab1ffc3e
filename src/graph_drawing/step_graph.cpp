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
    const auto [place, is_new] = positions.emplace(name, graph.nodes.size());
    if (is_new)
      graph.nodes.push_back({name, 0, rounds_of(step, pipeline), step.when.has_value(),
                             step.run_on == RunOn::failure  ? "failure"
                             : step.run_on == RunOn::always ? "always"
                                                            : ""});
    if (step.instance) ++graph.nodes[place->second].instances;
  }
  std::set<GraphEdge> seen;
  const auto add = [&](const std::string& from, const StepSpec& to, std::string label, bool is_data,
                       bool is_next = false) {
    GraphEdge edge{node_of.at(from), node_name(to), std::move(label), is_data, is_next};
    if (seen.insert(edge).second) graph.edges.push_back(std::move(edge));
  };
  for (const auto& step : pipeline.steps) {
    for (const auto& input : step.inputs) {
      for (const auto& source : input.sources) add(source.step, step, source.output, true);
      if (input.then) add(input.then->step, step, "next " + input.then->output, true, true);
    }
    if (step.when)
      for (const auto& [name, value] : step.when->outputs)
        add(value.source.step, step, "when", false);
    if (step.matrix)
      for (const auto& axis : step.matrix->axes)
        if (axis.items)
          add(axis.items->source.step, step, "each of " + axis.items->source.output, true);
    for (const auto& other : step.after) add(other, step, "", false);
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
