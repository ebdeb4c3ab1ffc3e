#include "graph_drawing/graph_layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace pipeline::graph_drawing {
namespace {

// Distances in pixels.
constexpr double node_gap = 24, line_gap = 12, layer_gap = 44, margin = 16;
/// Maximum number of bends of all edges. If more were needed, long edges are straight.
constexpr std::size_t max_bends = 20'000;

using Edge = std::pair<std::size_t, std::size_t>;

/// A node, or the point where a long edge crosses a layer.
struct Item {
  GraphSize size;
  std::size_t layer = 0;
  bool is_bend = false;
  double x = 0;                           ///< Position of the middle.
  std::vector<std::size_t> above, below;  ///< The connected items of the layers above and below.
};

class Layering {
 public:
  Layering(const std::vector<GraphSize>& sizes, const std::vector<Edge>& edges)
      : edges_(edges), items_(sizes.size()), is_back_(edges.size()), chains_(edges.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) items_[i].size = sizes[i];
  }

  GraphLayout run() {
    assign_layers(topological_order());
    add_bends();
    place_side_by_side();
    constexpr int sweeps = 12;
    for (int i = 0; i < sweeps; ++i) sort_layers(i % 2 == 0);
    for (int i = 0; i < sweeps; ++i) align_layers(i % 2 == 0);
    return result();
  }

 private:
  /// Returns the nodes in an order in which no edge leads back, and marks the edges that would.
  std::vector<std::size_t> topological_order() {
    enum class Mark { none, open, done };
    const auto count = items_.size();
    std::vector<std::vector<std::size_t>> leaving(count);
    for (std::size_t i = 0; i < edges_.size(); ++i) leaving[edges_[i].first].push_back(i);
    std::vector<Mark> marks(count, Mark::none);
    std::vector<std::size_t> order;
    for (std::size_t start = count; start-- > 0;) {
      if (marks[start] != Mark::none) continue;
      std::vector<std::pair<std::size_t, std::size_t>> path{
          {start, 0}};  // A node, and the number of its edges that were followed.
      marks[start] = Mark::open;
      while (!path.empty()) {
        auto& [node, seen] = path.back();
        if (seen == leaving[node].size()) {
          marks[node] = Mark::done;
          order.push_back(node);
          path.pop_back();
          continue;
        }
        const auto edge = leaving[node][leaving[node].size() - 1 - seen++];
        const auto next = edges_[edge].second;
        is_back_[edge] = marks[next] == Mark::open;
        if (marks[next] != Mark::none) continue;
        marks[next] = Mark::open;
        path.emplace_back(next, 0);
      }
    }
    std::ranges::reverse(order);
    return order;
  }

  /// Puts each node below those that it depends on. A layer has a limited number of nodes, so that
  /// a thousand steps beside each other do not become one long line.
  void assign_layers(const std::vector<std::size_t>& order) {
    const auto max_in_layer = std::max<std::size_t>(
        6, static_cast<std::size_t>(std::ceil(1.2 * std::sqrt(static_cast<double>(order.size())))));
    std::vector<std::vector<std::size_t>> needs(items_.size());
    for (std::size_t i = 0; i < edges_.size(); ++i)
      if (!is_back_[i]) needs[edges_[i].second].push_back(edges_[i].first);
    std::vector<std::size_t> in_layer;
    for (const auto node : order) {
      std::size_t layer = 0;
      for (const auto need : needs[node]) layer = std::max(layer, items_[need].layer + 1);
      while (layer < in_layer.size() && in_layer[layer] == max_in_layer) ++layer;
      if (layer == in_layer.size()) in_layer.push_back(0);
      ++in_layer[layer];
      items_[node].layer = layer;
    }
    layers_.resize(in_layer.size());
    for (const auto node : order) layers_[items_[node].layer].push_back(node);
  }

  /// Gives long edges a bend in each layer that they cross. Edges that leave one node share bends.
  void add_bends() {
    std::size_t needed = 0;
    for (std::size_t i = 0; i < edges_.size(); ++i)
      if (!is_back_[i])
        needed += items_[edges_[i].second].layer - items_[edges_[i].first].layer - 1;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> bends;  // Keyed by node and layer.
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      if (is_back_[i]) continue;
      const auto [from, to] = edges_[i];
      auto& chain = chains_[i];
      chain.push_back(from);
      for (auto layer = items_[from].layer + 1; needed <= max_bends && layer < items_[to].layer;
           ++layer) {
        const auto [known, is_new] = bends.emplace(std::pair(from, layer), items_.size());
        if (is_new) {
          layers_[layer].push_back(items_.size());
          items_.push_back({.size = {}, .layer = layer, .is_bend = true});
        }
        chain.push_back(known->second);
      }
      chain.push_back(to);
      for (std::size_t k = 1; k < chain.size(); ++k) {
        auto& below = items_[chain[k - 1]].below;
        if (std::ranges::find(below, chain[k]) != below.end()) continue;
        below.push_back(chain[k]);
        items_[chain[k]].above.push_back(chain[k - 1]);
      }
    }
  }

  double gap_between(std::size_t left, std::size_t right) const {
    const auto& a = items_[left];
    const auto& b = items_[right];
    return (a.size.width + b.size.width) / 2 + (a.is_bend || b.is_bend ? line_gap : node_gap);
  }

  /// Puts the items of each layer beside each other.
  void place_side_by_side() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (std::size_t i = 0; i < layer.size(); ++i)
        items_[layer[i]].x = x += i ? gap_between(layer[i - 1], layer[i]) : 0;
      for (const auto item : layer) items_[item].x -= x / 2;
    }
  }

  /// Returns the mean position of the items that this item is connected with above or below; its
  /// own position if there are none.
  double wanted(std::size_t index, bool looks_up) const {
    const auto& item = items_[index];
    const auto& others = looks_up ? item.above : item.below;
    if (others.empty()) return item.x;
    double sum = 0;
    for (const auto other : others) sum += items_[other].x;
    return sum / static_cast<double>(others.size());
  }

  template <class Function>
  void for_layers(bool down, Function function) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      function(layers_[down ? i : layers_.size() - 1 - i]);
  }

  /// Orders each layer by where its items want to be, so that fewer edges cross.
  void sort_layers(bool down) {
    for_layers(down, [&](std::vector<std::size_t>& layer) {
      std::map<std::size_t, double> wishes;
      for (const auto item : layer) wishes[item] = wanted(item, down);
      std::ranges::stable_sort(layer, {}, [&](std::size_t item) { return wishes.at(item); });
      place_near(layer, down);
    });
  }
  void align_layers(bool down) {
    for_layers(down, [&](const std::vector<std::size_t>& layer) { place_near(layer, down); });
  }

  /// Moves the items of a layer as near as possible to where they want to be, in least squares,
  /// without changing their order: an isotonic regression by pooling adjacent violators.
  void place_near(const std::vector<std::size_t>& layer, bool looks_up) {
    struct Pool {
      double sum = 0;
      std::size_t count = 0;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<double> offsets(layer.size());
    std::vector<Pool> pools;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      offsets[i] = i ? offsets[i - 1] + gap_between(layer[i - 1], layer[i]) : 0;
      pools.push_back({wanted(layer[i], looks_up) - offsets[i], 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const auto last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().count += last.count;
      }
    }
    std::size_t i = 0;
    for (const auto& pool : pools)
      for (std::size_t k = 0; k < pool.count; ++k, ++i)
        items_[layer[i]].x = pool.mean() + offsets[i];
  }

  GraphLayout result() const {
    double left = 0, right = 0;
    for (const auto& item : items_) {
      left = std::min(left, item.x - item.size.width / 2);
      right = std::max(right, item.x + item.size.width / 2);
    }
    std::vector<double> middles, heights;
    double y = margin;
    for (const auto& layer : layers_) {
      double height = 0;
      for (const auto item : layer) height = std::max(height, items_[item].size.height);
      middles.push_back(y + height / 2);
      heights.push_back(height);
      y += height + layer_gap;
    }
    GraphLayout layout;
    layout.size = {right - left + 2 * margin, std::max(2 * margin, y - layer_gap + margin)};
    // -1: the point on the upper side of the item, 0: its middle, 1: the point on its lower side.
    const auto point_of = [&](std::size_t item, double side) {
      const auto& size = items_[item].size;
      // A bend passes the whole height of its layer.
      const auto height = items_[item].is_bend ? heights[items_[item].layer] : size.height;
      return GraphPoint{items_[item].x - left + margin,
                        middles[items_[item].layer] + side * height / 2};
    };
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!items_[i].is_bend) layout.nodes.push_back(point_of(i, 0));
    for (const auto& chain : chains_) {
      auto& points = layout.edges.emplace_back();
      for (std::size_t k = 0; k < chain.size(); ++k) {
        if (k > 0) points.push_back(point_of(chain[k], -1));
        if (k + 1 < chain.size()) points.push_back(point_of(chain[k], 1));
      }
    }
    return layout;
  }

  const std::vector<Edge>& edges_;
  std::vector<Item> items_;  ///< The nodes, then the bends.
  std::vector<bool> is_back_;
  std::vector<std::vector<std::size_t>> chains_;  ///< The items of each edge.
  std::vector<std::vector<std::size_t>> layers_;
};

}  // namespace

GraphLayout layout_graph(const std::vector<GraphSize>& nodes, const std::vector<Edge>& edges) {
  return Layering(nodes, edges).run();
}

}  // namespace pipeline::graph_drawing
