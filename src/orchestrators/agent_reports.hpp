/// @file
/// The reports of the agents that started running attempts, where this machine does not see the
/// attempts' processes.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

/// The last report of an attempt's agent.
struct AgentReport {
  /// The calls in which processes of a stalled step wait, for usage::read_agent_waits(); empty if
  /// the agent has not reported them.
  std::string waits;
  /// The time at which the step last printed something, used CPU time, or read or wrote files.
  std::optional<std::chrono::steady_clock::time_point> progressed = {};
};

class AgentReports {
 public:
  /// Returns the report of the attempt's agent; the code that reads the agent's messages fills it.
  AgentReport& of(const Attempt& attempt) { return reports_[&attempt]; }
  /// Removes the report of an attempt that has ended.
  void forget(const Attempt& attempt) { reports_.erase(&attempt); }

  /// Returns AgentReport::waits, for which it waits up to three seconds. The agent reports the
  /// waits when it finds the step stalled, at about the time of this call. On a step with nodes, an
  /// agent whose own processes make progress reports none; the returned text is then empty.
  async::Task<std::string> waits_of(const Attempt& attempt) const;
  /// Returns when the attempt last made progress; nothing if its agent has not reported that.
  std::optional<core::Activity> activity_of(const Attempt& attempt) const;

 private:
  std::map<const Attempt*, AgentReport> reports_;
};

}  // namespace pipeline::orchestrators
