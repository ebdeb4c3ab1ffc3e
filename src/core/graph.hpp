/// @file
/// A directed graph over the steps 0..n-1, and the order in which they may run. Pure: no clock, no
/// input or output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeline::core {

using StepIndex = std::uint32_t;

/// Edges go from a step to those that need it. Memory: two compressed adjacency arrays.
class Graph {
 public:
  /// @param needs for each step the steps that must have succeeded first; duplicates are dropped.
  /// An index out of range: std::out_of_range.
  explicit Graph(const std::vector<std::vector<StepIndex>>& needs);
  std::size_t size() const { return first_need_.size() - 1; }
  std::span<const StepIndex> needs(StepIndex step) const;
  std::span<const StepIndex> needed_by(StepIndex step) const;
  /// Every step after all that it needs, smaller index first where there is a choice; nothing if
  /// there is a cycle.
  std::optional<std::vector<StepIndex>> topological_order() const;
  /// The steps of one cycle, each needing the next, the last needing the first; empty if there is
  /// none.
  std::vector<StepIndex> find_cycle() const;

 private:
  std::vector<std::uint32_t> first_need_, first_needed_by_;
  std::vector<StepIndex> needs_, needed_by_;
};

/// Decides what may run next. A step becomes ready when all that it needs has succeeded; ties go to
/// the longest chain of steps still behind it, then to the smaller index, so that the same run
/// always makes the same choices.
class Scheduler {
 public:
  /// Refers to the graph, which has no cycle (else std::invalid_argument).
  explicit Scheduler(const Graph& graph);
  /// The best ready step, or nothing; it is not ready any more.
  std::optional<StepIndex> take();
  bool has_ready() const { return ready_count_ > 0; }
  /// The step ended well; what waited for it alone becomes ready.
  void succeeded(StepIndex step);
  /// The step failed or was skipped: returns everything else that can never run now, in topological
  /// order, and forgets it.
  std::vector<StepIndex> failed(StepIndex step);
  /// No step is ready, none is running, none is waiting.
  bool done() const { return remaining_ == 0; }
  std::size_t running() const { return running_; }
  /// The step's place among all, most urgent first: for those who hand out something else in the
  /// same order.
  std::uint32_t urgency(StepIndex step) const { return urgency_[step]; }

 private:
  enum class State : std::uint8_t { waiting, ready, running, gone };
  void make_ready(StepIndex step);
  void leave(StepIndex step);

  const Graph& graph_;
  std::vector<std::uint32_t> urgency_;   ///< Of each step: its place among all by chain behind it,
                                         ///< then index. Smaller goes first.
  std::vector<StepIndex> by_urgency_;    ///< The inverse.
  std::vector<std::uint32_t> position_;  ///< In topological order.
  std::vector<std::uint32_t> missing_;   ///< How many of its needs have not succeeded.
  std::vector<State> state_;
  std::vector<std::uint32_t> heap_;  ///< Urgencies of the ready steps, smallest first; steps that
                                     ///< left meanwhile are passed over.
  std::size_t remaining_, ready_count_ = 0, running_ = 0;
};

}  // namespace pipeline::core
