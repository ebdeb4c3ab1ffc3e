/// @file
/// Decides what is done next about an attempt's Job, from what is known of it. Pure: makes no
/// requests and reads no clock, so that each of its rules is a row of a table in its test.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "core/cancel.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"

namespace pipeline::orchestrators::kubernetes {

/// All that is known of a Job at one moment.
struct JobView {
  const nlohmann::json& job;
  const nlohmann::json& pod;  ///< Null: it has none yet.
  bool job_gone = false, pod_gone = false;
  core::StopLevel wanted = core::StopLevel::none;  ///< How the attempt is to be stopped.
  bool output_ended = false;  ///< The agent has reported the end of the step's output.
  bool shell_left = false;    ///< A shell ended some time ago, but its pod has not ended.
  Room room = Room::not_looked;
  std::string refused;      ///< Message of the Job's last event `FailedCreate`.
  std::string queued = {};  ///< See why_queued().
  /// The step's command has begun, so that its services were ready, although the pod's status may
  /// not say so yet.
  bool has_begun = false;
};

struct JobAction {
  enum class Kind {
    wait,    ///< Until something changes, or for a second if `is_timed`.
    stop,    ///< Deletes Job and pod; the pod has the grace period of `level`.
    remove,  ///< Deletes the Job, before the cluster replaces its pod.
    fail,    ///< Stops the pod at once: the attempt has failed with `failure`.
    end      ///< Stops watching: the pod has ended, or its end is not waited for.
  };
  Kind kind = Kind::wait;
  PodState state;  ///< The pod's state on which the action is based.
  core::StopLevel level = core::StopLevel::none;
  std::optional<Failure> failure = {};
  std::string notice = {};  ///< Why the pod waits, unless the user was told before.
  bool is_timed = false;
};

/// Follows a Job from its creation to its end:
///
///     no pod (suspended, refused by a quota) -> no node -> images -> files -> running -> ended
///
/// Each stage before `running` has a time limit of its own; queues have none.
class JobWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// @param startup limit of a stage without a limit of its own
  /// @param grace   grace period of a pod that is asked to end
  JobWatch(std::chrono::seconds startup, std::chrono::seconds grace)
      : startup_(startup), grace_(grace) {}

  /// Returns the next action; called after each change, and when a timed wait is over.
  JobAction next(const JobView& view, TimePoint now);
  /// Returns how long the Job has been in the present stage of its wait.
  std::chrono::steady_clock::duration in_stage(TimePoint now) const { return now - stage_since_; }
  /// Returns how the attempt was stopped, by a user or because of a failure.
  core::StopLevel stopping() const { return stopping_; }

 private:
  bool is_lost(const JobView& view, const PodState& state, TimePoint now) const;
  JobAction act(const JobView& view, PodState state, TimePoint now);
  void stop(core::StopLevel level, TimePoint now);

  const std::chrono::seconds startup_, grace_;
  std::string stage_;
  TimePoint stage_since_;
  std::optional<TimePoint> leaves_since_;  ///< When the pod was last asked to end.
  core::StopLevel stopping_ = core::StopLevel::none;
  std::set<std::string> reported_;  ///< All notices; a kubelet can alternate between two messages.
};

}  // namespace pipeline::orchestrators::kubernetes
