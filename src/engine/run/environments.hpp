/// @file
/// The environments of a run's steps, such as images and virtual environments. Each is prepared at
/// most once: when its step starts, or while earlier steps run.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/gate.hpp"
#include "core/cancel.hpp"
#include "engine/run_context.hpp"
#include "model/graph.hpp"

namespace pipeline::engine {

class Environments {
 public:
  /// @param steps number of steps
  /// @param on_failure called with a step whose environment could not be prepared, unless stop()
  /// has ended the preparation
  Environments(const RunContext& context, std::size_t steps,
               std::function<void(model::StepIndex)> on_failure);

  bool is_begun(model::StepIndex i) const { return ready_[i] || preparations_.contains(i); }
  /// Begins to prepare the step's environment. Called at most once for each step, except after
  /// set() or rearm().
  void begin(model::StepIndex i, const StepSpec& step);
  /// Records that the step's environment is ready.
  void set(model::StepIndex i, orchestrators::Environment environment);
  /// Waits until the step's environment is ready. Throws the exception of its preparation.
  async::Task<> prepared(model::StepIndex i);
  /// Returns the environment of a step that has one, else an empty one.
  const orchestrators::Environment& of(model::StepIndex i) const;
  /// Makes room for more steps. @param steps number of all steps
  void grow(std::size_t steps) { ready_.resize(steps); }
  /// Stops preparations in progress, except those of steps with a `run_on`.
  void stop(core::StopLevel level) { stop_.stop(level); }
  /// Stops all preparations in progress.
  void stop_all(core::StopLevel level);
  /// Lets preparations begin again after stop(), including those that stop() ended.
  void rearm();
  /// Throws the exception of a failed preparation, if there is one.
  void rethrow() const;
  /// Throws the exception of this step's preparation, if it failed.
  void rethrow(model::StepIndex i) const;
  /// Returns true if the preparation has failed, and was not stopped.
  bool has_failed(model::StepIndex i) const {
    const auto found = preparations_.find(i);
    return found != preparations_.end() && found->second.error && !found->second.was_stopped;
  }

 private:
  struct Preparation {
    std::unique_ptr<async::Gate> ended;
    std::exception_ptr error;
    bool was_stopped = false;  ///< The error was caused by stop().
  };
  async::Task<> prepare(model::StepIndex i, const StepSpec& step);
  /// Keeps a ready environment, and records what it was made from, for a later plan().
  void keep(model::StepIndex i, orchestrators::Environment environment);

  const RunContext& context_;
  std::function<void(model::StepIndex)> on_failure_;
  core::CancelSource stop_, final_stop_;           ///< The second one is for steps with a `run_on`.
  std::set<orchestrators::Environment> distinct_;  ///< Most steps of a large run share one.
  /// For each step its environment in `distinct_`; null: it is not ready.
  std::vector<const orchestrators::Environment*> ready_;
  /// Few steps of a large run have one: the others find their environment ready.
  std::map<model::StepIndex, Preparation> preparations_;
};

}  // namespace pipeline::engine
