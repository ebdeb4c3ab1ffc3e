/// @file
/// Positions for the nodes and edges of a graph in layers, from top to bottom (Sugiyama, Tagawa and
/// Toda 1981): layers, order within them, then coordinates.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace pipeline::graph_drawing {

/// All lengths are in pixels.
struct GraphSize {
  double width = 0, height = 0;
};
struct GraphPoint {
  double x = 0, y = 0;
};

struct GraphLayout {
  std::vector<GraphPoint> nodes;  ///< The middle of each node.
  /// The points that each edge goes through, from the lower side of a node to the upper side of
  /// another; empty for an edge against the direction of the others.
  std::vector<std::vector<GraphPoint>> edges;
  GraphSize size;
};

/// Returns the layout. Equal graphs have equal layouts; even 10,000 nodes do not take seconds.
/// @param nodes the sizes of the nodes
/// @param edges from and to, as indices of nodes; an edge that closes a circle gets no points
GraphLayout layout_graph(const std::vector<GraphSize>& nodes,
                         const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace pipeline::graph_drawing
