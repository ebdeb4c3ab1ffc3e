/// @file
/// Decides whether and when a failed attempt is retried.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/types.hpp"

namespace pipeline::engine {

/// A failed attempt, as far as its retry depends on it.
struct FailedAttempt {
  const Failure& failure;
  const orchestrators::AttemptResult& result;
  std::optional<Bytes> memory;  ///< The attempt's memory limit.
  std::filesystem::path log;    ///< The attempt's log file.
};

/// Returns true if one of the patterns of `retry.on` or `retry.never` names the failure. Reads the
/// whole log if a pattern is a text.
bool is_named(const FailedAttempt& failed, const StringList& patterns);

class Retries {
 public:
  /// @param infrastructure default for the number of retries after infrastructure failures
  Retries(const RetrySettings& settings, unsigned infrastructure)
      : settings_(settings),
        infrastructure_(settings.max_infrastructure_retries.value_or(infrastructure)),
        delay_(settings.delay.value_or(Duration{0})) {}

  /// Counts the failure in `counts`, and returns the next attempt; nothing if there is none. Reads
  /// files as is_named() does.
  std::optional<Retry> retry_after(const FailedAttempt& failed, AttemptCounts& counts) {
    const auto failure_kind = failed.failure.kind;
    if (failure_kind == FailureKind::cancelled || failure_kind == FailureKind::not_started)
      return std::nullopt;
    if (is_named(failed, settings_.never)) {
      ++counts.failures;
      return std::nullopt;
    }
    // A preemption is not counted, as queues do not count it either: the next attempt waits in the
    // queue until there is room again.
    if (failure_kind == FailureKind::infrastructure && failed.result.was_preempted &&
        infrastructure_ > 0)
      return Retry{pause_after_preemption_};
    if (failure_kind == FailureKind::infrastructure && counts.interruptions < infrastructure_) {
      ++counts.interruptions;
      return Retry{
          std::exchange(after_interruption_, std::min(2 * after_interruption_, max_pause_))};
    }
    if (failure_kind == FailureKind::out_of_memory)
      if (const auto more = raised_memory(failed.memory))
        return Retry{std::chrono::milliseconds(0), more};
    // Without `max_retries`, `stalled: true` and `on` mean one more try.
    const bool is_wanted = failure_kind == FailureKind::stalled || settings_.on;
    const auto max_retries = settings_.max_retries.value_or(is_wanted ? 1 : 0);
    if (++counts.failures > max_retries || (settings_.on && !is_named(failed, settings_.on)))
      return std::nullopt;
    return Retry{std::exchange(delay_, std::chrono::duration_cast<std::chrono::milliseconds>(
                                           delay_ * settings_.backoff.value_or(1.0)))};
  }

  /// Returns the memory limit of the next attempt; nothing if the step may not have more memory.
  std::optional<Bytes> raised_memory(const std::optional<Bytes>& memory) const {
    const auto& [factor, max] = settings_.on_oom;
    if (!memory || !max || *memory >= *max) return std::nullopt;
    const auto more = static_cast<double>(*memory) * factor.value_or(Factor(2)).value;
    return more < static_cast<double>(*max) ? std::max(static_cast<Bytes>(more), *memory + 1)
                                            : *max;
  }

 private:
  static constexpr std::chrono::milliseconds max_pause_ = std::chrono::minutes(1);
  static constexpr std::chrono::milliseconds pause_after_preemption_ = std::chrono::seconds(1);
  const RetrySettings& settings_;
  unsigned infrastructure_;          ///< Maximum number of retries after infrastructure failures.
  std::chrono::milliseconds delay_;  ///< Before the next retry after another failure.
  std::chrono::milliseconds after_interruption_ =
      std::chrono::seconds(1);  ///< A lost node may come back within this time.
};

}  // namespace pipeline::engine
