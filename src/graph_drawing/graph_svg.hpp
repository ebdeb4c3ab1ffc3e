/// @file
/// Draws a pipeline's graph as SVG.
#pragma once

#include <string>

#include "graph_drawing/step_graph.hpp"

namespace pipeline::graph_drawing {

std::string svg_of(const StepGraph& graph);

}  // namespace pipeline::graph_drawing
