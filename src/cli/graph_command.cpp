// Prints a pipeline's graph for other programs to draw. The instances of a matrix are one node.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/pipeline_source.hpp"

namespace pipeline::cli {
namespace {

struct GraphNode {
  std::string name;
  std::size_t instances = 0;  ///< 0: the step has no matrix.
  unsigned rounds = 0;        ///< The most that it runs in; 0: it is not repeated.
  bool is_conditional = false;
  std::string run_on;  ///< Empty: success.
};

struct GraphEdge {
  std::string from, to;
  std::string label;     ///< The output; `when`; empty for `after`.
  bool is_data = false;  ///< The step reads the output.
  auto operator<=>(const GraphEdge&) const = default;
};

struct StepGraph {
  std::string pipeline;
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
};

const std::string& node_name(const StepSpec& step) {
  return step.instance ? step.instance->of : step.name;
}

unsigned rounds_of(const StepSpec& step, const PipelineSpec& pipeline) {
  if (!step.repeat) return 0;
  return std::ranges::find(pipeline.steps, step.repeat->of, &StepSpec::name)->repeat->max;
}

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
  const auto add = [&](const std::string& from, const StepSpec& to, std::string label,
                       bool is_data) {
    GraphEdge edge{node_of.at(from), node_name(to), std::move(label), is_data};
    if (seen.insert(edge).second) graph.edges.push_back(std::move(edge));
  };
  for (const auto& step : pipeline.steps) {
    for (const auto& input : step.inputs) {
      for (const auto& source : input.sources) add(source.step, step, source.output, true);
      if (input.then) add(input.then->step, step, "next " + input.then->output, true);
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

std::string label_of(const GraphNode& node) {
  std::string label = node.name;
  if (node.instances) label += " (" + counted(node.instances, "instance") + ")";
  if (node.rounds) label += ", up to " + counted(node.rounds, "round");
  if (!node.run_on.empty()) label += ", run_on: " + node.run_on;
  return label;
}

/// Mermaid's identifiers have no `-`, and some words mean something else, such as `end`.
std::string mermaid_of(const StepGraph& graph) {
  std::map<std::string, std::string> ids;
  std::string text = "flowchart TB\n";
  for (const auto& node : graph.nodes) {
    const auto id = ids.emplace(node.name, "s" + std::to_string(ids.size())).first->second;
    text += "  " + id + (node.is_conditional ? "{{\"" : "[\"") + label_of(node) +
            (node.is_conditional ? "\"}}\n" : "\"]\n");
  }
  for (const auto& edge : graph.edges) {
    const auto label = edge.label.empty() ? "" : "|" + edge.label + "|";
    text += "  " + ids[edge.from] + (edge.is_data ? " -->" : " -.->") + label + " " + ids[edge.to] +
            "\n";
  }
  return text;
}

/// All names are of letters, digits, `_`, `-` and `.`, so nothing has to be escaped.
std::string dot_of(const StepGraph& graph) {
  std::string text = "digraph \"" + graph.pipeline + "\" {\n  node [shape=box];\n";
  for (const auto& node : graph.nodes)
    text += "  \"" + node.name + "\" [label=\"" + label_of(node) + "\"" +
            (node.is_conditional ? ", shape=hexagon" : "") + "];\n";
  for (const auto& edge : graph.edges) {
    std::string attributes = edge.label.empty() ? "" : "label=\"" + edge.label + "\"";
    if (!edge.is_data) attributes += (attributes.empty() ? "" : ", ") + std::string("style=dashed");
    text += "  \"" + edge.from + "\" -> \"" + edge.to + "\" [" + attributes + "];\n";
  }
  return text + "}\n";
}

nlohmann::json json_of(const StepGraph& graph) {
  nlohmann::json document{{"pipeline", graph.pipeline},
                          {"nodes", nlohmann::json::array()},
                          {"edges", nlohmann::json::array()}};
  for (const auto& node : graph.nodes) {
    nlohmann::json entry{{"step", node.name}, {"conditional", node.is_conditional}};
    if (node.instances) entry["instances"] = node.instances;
    if (node.rounds) entry["rounds"] = node.rounds;
    if (!node.run_on.empty()) entry["run_on"] = node.run_on;
    document["nodes"].push_back(std::move(entry));
  }
  for (const auto& edge : graph.edges) {
    nlohmann::json entry{{"from", edge.from}, {"to", edge.to}, {"data", edge.is_data}};
    if (!edge.label.empty()) entry["label"] = edge.label;
    document["edges"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace

core::ExitCode graph_command(Context& context) {
  PipelineSource source(context);
  const auto graph = graph_of(source.pipeline());
  if (context.options().json)
    context.print_json(json_of(graph));
  else
    context.print(context.options().graph.format == "dot" ? dot_of(graph) : mermaid_of(graph));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
