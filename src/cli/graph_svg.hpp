/// @file
/// Draws a pipeline's graph as SVG.
#pragma once

#include <string>

#include "cli/step_graph.hpp"

namespace pipeline::cli {

std::string svg_of(const StepGraph& graph);

}  // namespace pipeline::cli
