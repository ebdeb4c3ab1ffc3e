/// @file
/// The state of a run as derived from its events, for the live lines and the final summary.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/unordered/unordered_flat_set.hpp>
#include <pipeline/events.hpp>
#include <pipeline/rare.hpp>

#include "model/last_values.hpp"

namespace pipeline::driver {

using SteadyTime = std::chrono::steady_clock::time_point;

/// In a run with more steps than this, a reused step gets no line of its own.
inline constexpr std::size_t many_steps = 50;

/// If a step has more instances than this, they are shown together.
inline constexpr std::size_t many_instances = 20;

/// Number of values of StepStatus.
inline constexpr std::size_t status_count = static_cast<std::size_t>(StepStatus::cancelled) + 1;

/// The instances of a step with a matrix, if they are many.
struct GroupView {
  std::string name;
  std::size_t total = 0;
  /// Numbers of the instances that had an event, indexed by StepStatus.
  std::size_t counts[status_count] = {};
  SteadyTime began{}, ended{};  ///< Start of the first attempt, and last change of a status.
  std::size_t reported = 0;     ///< Number of failures that were reported individually.
  std::size_t count(StepStatus status) const { return counts[static_cast<std::size_t>(status)]; }
  std::size_t done() const;
  /// Returns `37/100, 2 running, 1 failed`.
  std::string text() const;
};

/// A step of the run. A run may have 100,000 steps, so members that few steps have take a pointer.
struct StepView {
  std::string name;
  std::optional<std::size_t> group;  ///< Index into RunModel::groups.
  StepStatus status = StepStatus::pending;
  unsigned attempts = 0;
  std::chrono::milliseconds took{};
  SteadyTime since{};  ///< Start of the running attempt.
  RareText waits_for;  ///< Why the step has not started.
  RareText row;        ///< Line that the running attempt rewrites, such as a progress bar.
  Rare<model::LastValues> values;  ///< The metrics in the lines of the last attempt.
  std::string reused_from;
  Rare<Failure> failure;
  RareText reason;  ///< Why the step was not started.
  /// Returns the text of `values`; empty if there are none.
  std::string values_text() const { return values ? values->text() : ""; }
};

struct BuildView {
  std::string image, text;  ///< text: the current action.
  std::vector<std::string> steps;
  SteadyTime since{};
};

class RunModel {
 public:
  RunModel() = default;
  RunModel(RunModel&&) = default;
  RunModel& operator=(RunModel&&) = default;

  /// @param now the time of the event
  void apply(const Event& event, SteadyTime now);

  std::string run, pipeline, orchestrator;
  std::size_t total = 0;  ///< Number of steps of the run.
  /// In the order of their first events. Nothing shows the reused instances in a group one by one,
  /// so only the first of them has a view.
  std::deque<StepView> steps;
  std::vector<GroupView> groups;
  std::vector<BuildView> builds;  ///< Builds in progress.
  std::vector<std::pair<std::string, Failure>> failed_builds;
  std::optional<event::RunFinished> finished;
  SteadyTime began{};

  std::size_t count(StepStatus status) const { return counts_[static_cast<std::size_t>(status)]; }
  std::size_t done() const;
  /// Returns the view of the step, which is added if it is new.
  StepView& step(const std::string& name);
  /// Returns the step's group, or null.
  GroupView* group_of(const std::string& step);

 private:
  void update(const event::RunStarted& e, SteadyTime now);
  void update(const event::BuildStarted& e, SteadyTime now);
  void update(const event::BuildProgress& e, SteadyTime now);
  void update(const event::BuildFinished& e, SteadyTime now);
  void update(const event::StepStarted& e, SteadyTime now);
  void update(const event::StepLog& e, SteadyTime now);
  void update(const event::StepProgress& e, SteadyTime now);
  void update(const event::StepRetried& e, SteadyTime now);
  void update(const event::StepWaits& e, SteadyTime now);
  void update(const event::StepFinished& e, SteadyTime now);
  void update(const event::Notice& e, SteadyTime now);
  void update(const event::StepExpanded& e, SteadyTime now);
  void update(const event::RunFinished& e, SteadyTime now);

  /// Shows the step's instances together if they are many.
  void add_group(const std::string& step, std::size_t instances);
  void set_status(StepView& step, StepStatus status, SteadyTime now);
  bool only_counts(const std::string& step, StepStatus status, SteadyTime now);
  std::unordered_map<std::string_view, StepView*> index_;  ///< Keyed by the names in `steps`.
  std::unordered_map<std::string, std::size_t> group_index_;
  /// Number of instances of each step, over all rounds.
  std::unordered_map<std::string, std::size_t> instances_;
  std::size_t counts_[status_count] = {};  ///< Indexed by StepStatus.
  /// Hashes of the names of the reused steps that have no view, because there may be 100,000.
  boost::unordered_flat_set<std::size_t> only_counted_;
};

}  // namespace pipeline::driver
