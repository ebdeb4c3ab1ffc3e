/// @file
/// A pipeline's graph as it is drawn: the instances of a matrix are one node.
#pragma once

#include <string>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::graph_drawing {

/// A step; for a step with a matrix or rounds, all of its instances.
struct GraphNode {
  std::string name;
  std::size_t instances = 0;  ///< 0: the step has no matrix.
  unsigned rounds = 0;        ///< Maximum number of rounds; 0: the step is not repeated.
  bool is_conditional = false;
  std::string run_on;  ///< `failure` or `always`; empty: the default, success.
};

struct GraphEdge {
  std::string from, to;
  std::string label;     ///< The output's name, or `when`; empty for an `after`.
  bool is_data = false;  ///< The step `to` reads the output.
  bool is_next = false;  ///< Leads from one round to the next, back to an earlier step.
  auto operator<=>(const GraphEdge&) const = default;
};

struct StepGraph {
  std::string pipeline;
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
};

/// Returns the graph; equal edges of several instances are one.
StepGraph graph_of(const PipelineSpec& pipeline);

/// Returns the text below a node's name: `3 instances, run_on: always`; may be empty.
std::string node_details(const GraphNode& node);
/// Returns the node's name with its details: `train (3 instances), run_on: always`.
std::string node_label(const GraphNode& node);

}  // namespace pipeline::graph_drawing
