// A pipeline's graph as a picture.
#include "graph_drawing/graph_svg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph_drawing/graph_layout.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::graph_drawing {
namespace {

using testing::HasSubstr;
using testing::Not;
using Edges = std::vector<std::pair<std::size_t, std::size_t>>;

StepGraph graph(const std::string& steps) {
  return graph_of(spec::parse("name: x\nsteps:\n" + steps, "/tmp/pipeline.yaml"));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Checks that no two nodes overlap, all are within the picture, and each edge leads down.
void check(const std::vector<GraphSize>& sizes, const Edges& edges, const GraphLayout& layout) {
  ASSERT_EQ(layout.nodes.size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_GE(layout.nodes[i].x - sizes[i].width / 2, 0);
    EXPECT_LE(layout.nodes[i].x + sizes[i].width / 2, layout.size.width);
    EXPECT_LE(layout.nodes[i].y + sizes[i].height / 2, layout.size.height);
    for (std::size_t k = 0; k < i; ++k)
      EXPECT_TRUE(std::abs(layout.nodes[i].x - layout.nodes[k].x) + 1e-6 >=
                      (sizes[i].width + sizes[k].width) / 2 ||
                  std::abs(layout.nodes[i].y - layout.nodes[k].y) >=
                      (sizes[i].height + sizes[k].height) / 2)
          << i << " and " << k;
  }
  ASSERT_EQ(layout.edges.size(), edges.size());
  for (const auto& points : layout.edges)
    for (std::size_t i = 1; i < points.size(); ++i) EXPECT_GE(points[i].y, points[i - 1].y);
}

TEST(GraphLayout, nodes_do_not_overlap_and_edges_lead_down) {
  const std::vector<GraphSize> sizes{{60, 30}, {200, 44}, {60, 30}, {90, 30}, {60, 30}, {60, 30}};
  const Edges edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}, {4, 5}};
  const auto layout = layout_graph(sizes, edges);
  check(sizes, edges, layout);
  EXPECT_EQ(layout.edges[4].size(), 4u) << "a long edge goes around the layer between its ends";
}

TEST(GraphLayout, a_line_of_nodes_is_straight) {
  const std::vector<GraphSize> sizes{{60, 30}, {120, 30}, {80, 30}};
  const auto layout = layout_graph(sizes, {{0, 1}, {1, 2}});
  EXPECT_NEAR(layout.nodes[0].x, layout.nodes[1].x, 1e-6);
  EXPECT_NEAR(layout.nodes[1].x, layout.nodes[2].x, 1e-6);
}

TEST(GraphLayout, sorts_layers_so_that_edges_do_not_cross) {
  const std::vector<GraphSize> sizes(4, {60, 30});
  const auto layout = layout_graph(sizes, {{0, 3}, {1, 2}});
  EXPECT_EQ(layout.nodes[0].x < layout.nodes[1].x, layout.nodes[3].x < layout.nodes[2].x);
}

TEST(GraphLayout, a_graph_with_a_cycle_has_an_empty_layout) {
  const auto layout = layout_graph(std::vector<GraphSize>(3, {60, 30}), {{0, 1}, {1, 0}, {2, 2}});
  EXPECT_EQ(layout.edges[0].empty(), !layout.edges[1].empty());
  EXPECT_TRUE(layout.edges[2].empty());
}

TEST(GraphLayout, a_thousand_nodes_do_not_become_a_single_line) {
  for (const bool is_chain : {false, true}) {
    const std::vector<GraphSize> sizes(1000, {100, 30});
    Edges edges;
    for (std::size_t i = 1; i < 999; ++i) {
      edges.emplace_back(is_chain ? i - 1 : 0, i);
      edges.emplace_back(i, 999);
    }
    const auto layout = layout_graph(sizes, edges);
    check(sizes, edges, layout);
    EXPECT_LT(layout.size.width, 10'000);
  }
}

TEST(GraphSvg, draws_each_step_once_and_folds_a_matrix) {
  const auto svg = svg_of(
      graph("  load: {command: x, outputs: [data]}\n"
            "  train: {matrix: {c: [1, 2, 3]}, command: x, inputs: {d: load.data}, outputs: [m]}\n"
            "  best: {command: x, inputs: {all: 'train[*].m'}, when: '1 == 1'}\n"
            "  bye: {command: x, run_on: always}\n"));
  EXPECT_EQ(count(svg, "<rect class=\"step\""), 3u);
  EXPECT_EQ(count(svg, "<polygon class=\"when\""), 1u) << "best has a condition";
  EXPECT_THAT(svg, HasSubstr(">3 instances</text>"));
  EXPECT_THAT(svg, HasSubstr(">run_on: always</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>load to train: data</title>"));
  EXPECT_EQ(count(svg, "<title>train to best: m</title>"), 1u);
  EXPECT_EQ(count(svg, "edge order"), 3u) << "bye comes after the others, and reads nothing";
}

TEST(GraphSvg, has_an_edge_back_for_a_repeated_step) {
  const auto svg = svg_of(
      graph("  start: {command: x, outputs: [s]}\n"
            "  fit: {repeat: {max: 5}, command: x, inputs: {s: {first: start.s, then: fit.s}}, "
            "outputs: [s]}\n"));
  EXPECT_THAT(svg, HasSubstr("<title>fit to fit: next s</title>"));
  EXPECT_THAT(svg, HasSubstr(">up to 5 rounds</text>"));
}

TEST(GraphSvg, texts_are_escaped) {
  StepGraph drawn{"<script>&\"", {{"a<b>&\"\x01", 0, 0, false, "\"><x"}}, {}};
  const auto svg = svg_of(drawn);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("<x")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;&quot;"));
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&amp;&quot; "));
}

}  // namespace
}  // namespace pipeline::graph_drawing
