/// @file
/// Draws a pipeline's graph as SVG.
#pragma once

#include <string>

#include "graph_drawing/step_graph.hpp"

namespace pipeline::graph_drawing {

/// Returns the graph as an SVG document.
std::string svg_of(const StepGraph& graph);

}  // namespace pipeline::graph_drawing
