/// @file
/// What is known of a run from its events so far: what the live lines and the closing summary show.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <pipeline/events.hpp>

namespace pipeline::cli {

using SteadyTime = std::chrono::steady_clock::time_point;

/// More instances of one step than this are told as one.
inline constexpr std::size_t many_instances = 20;

/// The instances of a step with a matrix, when they are many.
struct GroupView {
  std::string name;
  std::size_t total = 0;
  std::size_t counts[7] = {};   ///< By status; of those that something was heard of.
  SteadyTime began{}, ended{};  ///< The first attempt of one of them, and the last end.
  std::size_t told = 0;         ///< Failures that were told one by one.
  std::size_t count(StepStatus status) const { return counts[static_cast<std::size_t>(status)]; }
  std::size_t done() const;
  /// `37/100, 2 running, 1 failed`
  std::string text() const;
};

struct StepView {
  std::string name;
  std::optional<std::size_t> group;  ///< In RunModel::groups.
  StepStatus status = StepStatus::pending;
  unsigned attempts = 0;
  std::chrono::milliseconds took{};
  SteadyTime since{};     ///< When the running attempt began.
  std::string waits_for;  ///< Why it has not begun.
  std::string row;        ///< Of the running attempt: a progress bar that it shows.
  std::string reused_from;
  std::optional<Failure> failure;
};

struct BuildView {
  std::string image, text;  ///< What it does at the moment.
  std::vector<std::string> steps;
  SteadyTime since{};
};

class RunModel {
 public:
  /// @param now the time of the event
  void apply(const Event& event, SteadyTime now);

  std::string run, pipeline, orchestrator;
  std::size_t total = 0;        ///< Steps of the run.
  std::vector<StepView> steps;  ///< In the order in which something was first heard of them.
  std::vector<GroupView> groups;
  std::vector<BuildView> builds;  ///< In progress.
  std::vector<std::pair<std::string, Failure>> failed_builds;
  std::optional<event::RunFinished> finished;
  SteadyTime began{};

  std::size_t count(StepStatus status) const { return counts_[static_cast<std::size_t>(status)]; }
  std::size_t done() const;
  StepView& step(const std::string& name);
  /// The group that the step is one of, if any.
  GroupView* group_of(const std::string& step);

 private:
  void set_status(StepView& step, StepStatus status, SteadyTime now);
  std::unordered_map<std::string, std::size_t> index_, group_index_;
  std::size_t counts_[7] = {};
};

}  // namespace pipeline::cli
