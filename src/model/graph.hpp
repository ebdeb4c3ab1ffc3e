/// @file
/// A directed graph over the steps 0..n-1, and the order in which they may run. Pure: no clock, no
/// input or output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pipeline::model {

using StepIndex = std::uint32_t;

/// Edges lead from a step to its dependents; stored as two compressed adjacency arrays.
class Graph {
 public:
  /// Throws std::out_of_range for an index of no step.
  /// @param needs for each step, the steps that must succeed first; duplicates are dropped
  explicit Graph(const std::vector<std::vector<StepIndex>>& needs);
  std::size_t size() const { return first_need_.size() - 1; }
  std::span<const StepIndex> needs(StepIndex step) const;
  std::span<const StepIndex> needed_by(StepIndex step) const;
  /// Returns every step after its dependencies, the smaller index first where there is a choice;
  /// nothing if there is a cycle.
  std::optional<std::vector<StepIndex>> topological_order() const;
  /// Returns the steps of one cycle, each depending on the next and the last on the first; empty if
  /// there is no cycle.
  std::vector<StepIndex> find_cycle() const;

 private:
  std::vector<std::uint32_t> first_need_, first_needed_by_;
  std::vector<StepIndex> needs_, needed_by_;
};

/// Decides which step may run next. A step is ready when all its dependencies have succeeded. Among
/// the ready steps, the one with the longest chain of steps that depend on it goes first, then the
/// one with the smaller index, so that equal runs make equal choices.
class Scheduler {
 public:
  /// Keeps a reference to the graph. Throws std::invalid_argument if the graph has a cycle.
  /// @param waits_for_ends for each step, whether it becomes ready once its dependencies have
  /// ended, failed ones included; empty: no step does
  explicit Scheduler(const Graph& graph, std::vector<bool> waits_for_ends = {});
  /// Removes and returns the most urgent ready step, or nothing.
  std::optional<StepIndex> take();
  /// Makes a step that take() has returned ready again.
  void put_back(StepIndex step);
  bool has_ready() const { return ready_count_ > 0; }
  /// Adds steps, with the indices that follow the last step. Each becomes a dependency of
  /// `barrier`, which becomes ready once all of them have ended, failed ones included. `barrier`
  /// may have been taken, but must not be gone.
  /// @param needs for each new step, its dependencies; a step does not wait for those that are gone
  /// @param waits_for_ends for each new step, as in the constructor
  void grow(StepIndex barrier, const std::vector<std::vector<StepIndex>>& needs,
            const std::vector<bool>& waits_for_ends = {});
  /// Returns true if the step has succeeded, failed, or can no longer run.
  bool is_gone(StepIndex step) const { return state_[step] == State::gone; }
  /// Marks the step as succeeded; steps that waited only for it become ready.
  void mark_succeeded(StepIndex step);
  /// Marks the step as failed or skipped. Returns and removes all steps that can no longer run, in
  /// topological order.
  std::vector<StepIndex> mark_failed(StepIndex step);
  /// Returns true if no step is ready, running or waiting.
  bool done() const { return remaining_ == 0; }
  std::size_t running() const { return running_; }
  /// Returns the step's rank among all steps, 0 for the most urgent, so that other resources can be
  /// allocated in the same order.
  std::uint32_t urgency(StepIndex step) const { return urgency_[step]; }

 private:
  enum class State : std::uint8_t { waiting, ready, running, gone };
  void make_ready(StepIndex step);
  void count_ended_dependency(StepIndex step);
  void mark_gone(StepIndex step);
  template <class Use>
  void for_each_dependent(StepIndex step, Use use);

  const Graph& graph_;
  std::vector<std::vector<StepIndex>> further_;  ///< Dependents that the graph does not have.
  std::vector<bool> waits_for_ends_;
  /// For each step, its rank by the chain of steps after it, then by index; the smallest goes
  /// first. A step that grow() added has the rank of its barrier.
  std::vector<std::uint32_t> urgency_;
  std::vector<std::uint32_t> position_;  ///< For each step, its position in topological order.
  /// For each step, the number of dependencies that it waits for.
  std::vector<std::uint32_t> missing_;
  std::vector<State> state_;
  /// The ready steps with their ranks, the smallest rank first. Steps that have been removed stay
  /// in the heap until take() skips them.
  std::vector<std::pair<std::uint32_t, StepIndex>> heap_;
  std::size_t remaining_, ready_count_ = 0, running_ = 0;
};

}  // namespace pipeline::model
