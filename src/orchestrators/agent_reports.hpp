/// @file
/// What the agents of running attempts have said, where this machine does not see the processes.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

struct AgentReport {
  std::string waits;  ///< Of a stalled step, for usage::read_agent_waits(); empty: none.
  /// When the step has last printed something, or made progress in silence.
  std::optional<std::chrono::steady_clock::time_point> progressed = {};
};

class AgentReports {
 public:
  /// Returns the report of the attempt's agent, for its reader.
  AgentReport& of(const Attempt& attempt) { return reports_[&attempt]; }
  void forget(const Attempt& attempt) { reports_.erase(&attempt); }

  /// Returns AgentReport::waits. The agent writes them at about the time when this is called, and
  /// not if its processes make progress while those of other nodes do not.
  async::Task<std::string> waits_of(const Attempt& attempt) const;
  std::optional<core::Activity> activity_of(const Attempt& attempt) const;

 private:
  std::map<const Attempt*, AgentReport> reports_;
};

}  // namespace pipeline::orchestrators
