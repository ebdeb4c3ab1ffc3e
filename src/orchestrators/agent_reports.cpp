#include "orchestrators/agent_reports.hpp"

#include "async/sleep.hpp"

namespace pipeline::orchestrators {
namespace {

constexpr int max_looks_for_waits = 30;
constexpr std::chrono::milliseconds pause_between_looks{100};

bool makes_progress(const Attempt& attempt, const AgentReport& report) {
  const auto& limit = attempt.step.stalled_after;
  return attempt.process && limit && report.progressed &&
         std::chrono::steady_clock::now() - *report.progressed <
             std::chrono::milliseconds(limit->count());
}

}  // namespace

async::Task<std::string> AgentReports::waits_of(const Attempt& attempt) const {
  for (int look = 0; look < max_looks_for_waits; ++look) {
    const auto found = reports_.find(&attempt);
    if (found == reports_.end()) break;
    if (!found->second.waits.empty()) co_return found->second.waits;
    if (makes_progress(attempt, found->second)) break;
    co_await async::sleep(pause_between_looks);
  }
  co_return std::string();
}

std::optional<core::Activity> AgentReports::activity_of(const Attempt& attempt) const {
  const auto found = reports_.find(&attempt);
  if (found == reports_.end() || !found->second.progressed) return std::nullopt;
  return core::Activity{.progressed = found->second.progressed};
}

}  // namespace pipeline::orchestrators
