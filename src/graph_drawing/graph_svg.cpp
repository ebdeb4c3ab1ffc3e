#include "graph_drawing/graph_svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph_drawing/graph_layout.hpp"

namespace pipeline::graph_drawing {
namespace {

constexpr double name_width = 7.8, detail_width = 6.6;  ///< Widths of a character in pixels.
constexpr double padding = 12, one_line = 30, two_lines = 44, min_width = 60;  // Pixels.
constexpr std::size_t max_line_length = 44;

constexpr const char* style =
    "text{font-family:ui-monospace,Menlo,Consolas,monospace;text-anchor:middle;fill:#1f2328}"
    ".name{font-size:13px}.detail{font-size:11px;fill:#59636e}"
    ".label{font-size:10px;fill:#59636e;stroke:#fff;stroke-width:4px;paint-order:stroke}"
    ".step{fill:#eef4fb;stroke:#4878a8;stroke-width:1.2}"
    ".when{fill:#fdf6e3;stroke:#b58900;stroke-width:1.2}"
    ".edge{fill:none;stroke:#7a8590;stroke-width:1.2}.order{stroke-dasharray:5 4}";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

/// Returns the number with one digit after the point, which suffices and keeps the file small.
std::string number(double value) {
  const auto tenths = static_cast<long long>(std::llround(value * 10));
  auto text = std::to_string(tenths / 10);
  if (tenths < 0 && tenths > -10) text.insert(0, "-");
  if (tenths % 10) text += "." + std::to_string(std::abs(tenths % 10));
  return text;
}
std::string coordinates(double x, double y) { return number(x) + "," + number(y); }

std::string clipped(const std::string& text) {
  return text.size() <= max_line_length ? text : text.substr(0, max_line_length - 3) + "...";
}

GraphSize size_of(const GraphNode& node) {
  const auto details = clipped(node_details(node));
  const auto width = std::max(static_cast<double>(clipped(node.name).size()) * name_width,
                              static_cast<double>(details.size()) * detail_width);
  // The corners of a step with a condition need room.
  const double sides = node.is_conditional ? 2 * padding + 12 : 2 * padding;
  return {std::max(width + sides, min_width), details.empty() ? one_line : two_lines};
}

std::string text(const char* kind, double x, double y, const std::string& content) {
  return std::string("<text class=\"") + kind + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
         "\">" + escaped(content) + "</text>";
}

std::string drawn(const GraphNode& node, GraphPoint middle) {
  const auto size = size_of(node);
  const auto details = node_details(node);
  const double left = middle.x - size.width / 2, top = middle.y - size.height / 2;
  std::string svg = "<g><title>" + escaped(node_label(node)) + "</title>";
  if (node.is_conditional) {
    const double corner = 10, right = left + size.width, bottom = top + size.height;
    svg += "<polygon class=\"when\" points=\"" + coordinates(left, middle.y) + " " +
           coordinates(left + corner, top) + " " + coordinates(right - corner, top) + " " +
           coordinates(right, middle.y) + " " + coordinates(right - corner, bottom) + " " +
           coordinates(left + corner, bottom) + "\"/>";
  } else {
    svg += "<rect class=\"step\" x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" +
           number(size.width) + "\" height=\"" + number(size.height) + "\" rx=\"6\"/>";
  }
  svg += text("name", middle.x, middle.y + (details.empty() ? 4.5 : -3), clipped(node.name));
  if (!details.empty()) svg += text("detail", middle.x, middle.y + 13, clipped(details));
  return svg + "</g>\n";
}

/// All edges from one node to another are one line.
struct Line {
  std::string labels;
  bool is_data = false, is_next = false;
};

std::string path(const std::string& curve, const Line& line, const std::string& title) {
  return std::string("<path class=\"edge") + (line.is_data ? "" : " order") +
         "\" marker-end=\"url(#arrow)\" d=\"" + curve + "\"><title>" + escaped(title) +
         "</title></path>\n";
}

/// Returns the path of an edge: curved between two layers, straight along the nodes that it passes.
std::string curve_through(const std::vector<GraphPoint>& points) {
  auto curve = "M" + coordinates(points[0].x, points[0].y);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto &from = points[i - 1], &to = points[i];
    if (i % 2 == 0) {
      curve += "L" + coordinates(to.x, to.y);
      continue;
    }
    const auto half = (from.y + to.y) / 2;
    curve += "C" + coordinates(from.x, half) + " " + coordinates(to.x, half) + " " +
             coordinates(to.x, to.y);
  }
  return curve;
}

/// Returns the path of an edge that leads back to an earlier node, or to the same one, on the right
/// side of both.
std::string curve_back(GraphPoint from, GraphSize from_size, GraphPoint to, GraphSize to_size) {
  const double begin = from.x + from_size.width / 2, end = to.x + to_size.width / 2;
  const double outside = std::max(begin, end) + 34, apart = from.y == to.y ? 8 : 0;
  return "M" + coordinates(begin, from.y + apart) + "C" + coordinates(outside, from.y + apart) +
         " " + coordinates(outside, to.y - apart) + " " + coordinates(end, to.y - apart);
}

/// Returns the point of a curve's last part with most room for a label: near the end that other
/// curves do not share. The point is that of a Bezier curve of curve_through() at `t`.
GraphPoint label_point(const std::vector<GraphPoint>& points, bool shares_begin, bool shares_end) {
  const auto &a = points[points.size() - 2], &b = points.back();
  const double t = shares_begin == shares_end ? 0.5 : shares_end ? 0.25 : 0.75;
  return {a.x + (b.x - a.x) * (3 * t * t - 2 * t * t * t),
          a.y + (b.y - a.y) * (1.5 * t * (1 - t) + t * t * t)};
}

std::string head(const std::string& title, double width, double height) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"" + number(width) +
         "\" height=\"" + number(height) + "\" viewBox=\"0 0 " + number(width) + " " +
         number(height) + "\">\n<title>" + escaped(title) + "</title>\n<style>" + style +
         "</style>\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
         "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0L8,4L0,8z\" "
         "fill=\"#7a8590\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#fff\"/>\n";
}

}  // namespace

std::string svg_of(const StepGraph& graph) {
  std::map<std::string, std::size_t> index;
  std::vector<GraphSize> sizes;
  for (const auto& node : graph.nodes) {
    index.emplace(node.name, sizes.size());
    sizes.push_back(size_of(node));
  }
  std::map<std::pair<std::size_t, std::size_t>, Line> lines;
  for (const auto& edge : graph.edges) {
    auto& line = lines[{index.at(edge.from), index.at(edge.to)}];
    if (!edge.label.empty()) line.labels += (line.labels.empty() ? "" : ", ") + edge.label;
    line.is_data |= edge.is_data;
    line.is_next |= edge.is_next;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::vector<unsigned> leaving(sizes.size()), arriving(sizes.size());
  for (const auto& [ends, line] : lines) {
    if (line.is_next) continue;
    edges.push_back(ends);
    ++leaving[ends.first];
    ++arriving[ends.second];
  }
  const auto layout = layout_graph(sizes, edges);

  constexpr std::size_t max_labelled_lines = 60;
  constexpr double room_for_returns = 40;  // For curve_back(), on the right.
  const double width = layout.size.width + (edges.size() < lines.size() ? room_for_returns : 0);
  auto svg = head(graph.pipeline, width, layout.size.height);
  std::string labels;
  std::size_t layout_edge = 0;
  for (const auto& [ends, line] : lines) {
    const auto& [from, to] = ends;
    const auto title = graph.nodes[from].name + " to " + graph.nodes[to].name +
                       (line.labels.empty() ? "" : ": " + line.labels);
    std::vector<GraphPoint> points;
    if (!line.is_next) points = layout.edges[layout_edge++];
    svg += path(points.empty()
                    ? curve_back(layout.nodes[from], sizes[from], layout.nodes[to], sizes[to])
                    : curve_through(points),
                line, title);
    if (line.labels.empty() || points.empty() || lines.size() > max_labelled_lines) continue;
    const bool is_short =
        points.size() == 2;  // The last part of a longer line begins beside other nodes.
    const auto at = label_point(points, is_short && leaving[from] > 1, arriving[to] > 1);
    labels += text("label", at.x, at.y + 3, clipped(line.labels)) + "\n";
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    svg += drawn(graph.nodes[i], layout.nodes[i]);
  return svg + labels + "</svg>\n";
}

}  // namespace pipeline::graph_drawing
