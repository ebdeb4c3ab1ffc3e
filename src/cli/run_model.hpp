/// @file
/// What is known of a run from its events so far: what the live lines and the closing summary show.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>

namespace pipeline::cli {

using SteadyTime = std::chrono::steady_clock::time_point;

struct StepView {
  std::string name;
  StepStatus status = StepStatus::pending;
  unsigned attempts = 0;
  std::chrono::milliseconds took{};
  SteadyTime since{};     ///< When the running attempt began.
  std::string waits_for;  ///< Why it has not begun.
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
  std::size_t total = 0;          ///< Steps of the run.
  std::vector<StepView> steps;    ///< In the order in which something was first heard of them.
  std::vector<BuildView> builds;  ///< In progress.
  std::vector<std::pair<std::string, Failure>> failed_builds;
  std::optional<event::RunFinished> finished;
  SteadyTime began{};

  std::size_t count(StepStatus status) const { return counts_[static_cast<std::size_t>(status)]; }
  std::size_t done() const;
  StepView& step(const std::string& name);

 private:
  void set_status(StepView& step, StepStatus status);
  std::map<std::string, std::size_t> index_;
  std::size_t counts_[7] = {};
};

}  // namespace pipeline::cli
