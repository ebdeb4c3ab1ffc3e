// `pipe graph`: prints a pipeline's graph, as a picture or for other programs to draw.
#include <map>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "driver/pipeline_source.hpp"
#include "graph_drawing/graph_svg.hpp"
#include "graph_drawing/step_graph.hpp"

namespace pipeline::cli {
namespace {

/// Returns the graph for Mermaid, whose identifiers have no `-` and exclude words such as `end`.
std::string mermaid_of(const graph_drawing::StepGraph& graph) {
  std::map<std::string, std::string> ids;
  std::string text = "flowchart TB\n";
  for (const auto& node : graph.nodes) {
    const auto id = ids.emplace(node.name, "s" + std::to_string(ids.size())).first->second;
    text += "  " + id + (node.is_conditional ? "{{\"" : "[\"") + graph_drawing::node_label(node) +
            (node.is_conditional ? "\"}}\n" : "\"]\n");
  }
  for (const auto& edge : graph.edges) {
    const auto label = edge.label.empty() ? "" : "|" + edge.label + "|";
    text += "  " + ids[edge.from] + (edge.is_data ? " -->" : " -.->") + label + " " + ids[edge.to] +
            "\n";
  }
  return text;
}

/// Returns the graph for Graphviz. All names are of letters, digits, `_`, `-` and `.`, so nothing
/// has to be escaped.
std::string dot_of(const graph_drawing::StepGraph& graph) {
  std::string text = "digraph \"" + graph.pipeline + "\" {\n  node [shape=box];\n";
  for (const auto& node : graph.nodes)
    text += "  \"" + node.name + "\" [label=\"" + graph_drawing::node_label(node) + "\"" +
            (node.is_conditional ? ", shape=hexagon" : "") + "];\n";
  for (const auto& edge : graph.edges) {
    std::string attributes = edge.label.empty() ? "" : "label=\"" + edge.label + "\"";
    if (!edge.is_data) attributes += (attributes.empty() ? "" : ", ") + std::string("style=dashed");
    text += "  \"" + edge.from + "\" -> \"" + edge.to + "\" [" + attributes + "];\n";
  }
  return text + "}\n";
}

nlohmann::json json_of(const graph_drawing::StepGraph& graph) {
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
  driver::PipelineSource source(context);
  const auto graph = graph_drawing::graph_of(source.pipeline());
  if (context.options().json)
    context.print_json(json_of(graph));
  else
    context.print(context.options().graph.format == "dot"   ? dot_of(graph)
                  : context.options().graph.format == "svg" ? graph_drawing::svg_of(graph)
                                                            : mermaid_of(graph));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
