/// @file
/// Decides whether and when a failed attempt is retried.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/types.hpp"

namespace pipeline::engine {

class Retries {
 public:
  /// @param infrastructure default for the number of retries after infrastructure failures
  Retries(const RetrySettings& settings, unsigned infrastructure)
      : settings_(settings),
        infrastructure_(settings.max_infrastructure_retries.value_or(infrastructure)),
        delay_(settings.delay.value_or(Duration{0})) {}

  /// Counts the failure in `counts`. Returns nothing if the step has failed.
  /// @param memory the failed attempt's limit
  std::optional<Retry> after(const Failure& failure, const std::optional<Bytes>& memory,
                             AttemptCounts& counts) {
    if (failure.kind == FailureKind::cancelled || failure.kind == FailureKind::not_started)
      return std::nullopt;
    if (failure.kind == FailureKind::infrastructure && counts.interruptions < infrastructure_) {
      ++counts.interruptions;
      return Retry{
          std::exchange(after_interruption_, std::min(2 * after_interruption_, max_pause_))};
    }
    if (failure.kind == FailureKind::out_of_memory)
      if (const auto more = more_than(memory)) return Retry{std::chrono::milliseconds(0), more};
    // Without `max_retries`, `stalled: true` means one more try.
    const auto most = settings_.max_retries.value_or(failure.kind == FailureKind::stalled ? 1 : 0);
    if (++counts.failures > most) return std::nullopt;
    return Retry{std::exchange(delay_, std::chrono::duration_cast<std::chrono::milliseconds>(
                                           delay_ * settings_.backoff.value_or(1.0)))};
  }

  /// Returns the limit after this one; nothing if the step may not have more memory.
  std::optional<Bytes> more_than(const std::optional<Bytes>& memory) const {
    const auto& [factor, max] = settings_.on_oom;
    if (!memory || !max || *memory >= *max) return std::nullopt;
    const auto more = static_cast<double>(*memory) * factor.value_or(Factor(2)).value;
    return more < static_cast<double>(*max) ? std::max(static_cast<Bytes>(more), *memory + 1)
                                            : *max;
  }

 private:
  static constexpr std::chrono::milliseconds max_pause_ = std::chrono::minutes(1);
  const RetrySettings& settings_;
  unsigned infrastructure_;
  std::chrono::milliseconds delay_;
  std::chrono::milliseconds after_interruption_ =
      std::chrono::seconds(1);  ///< A lost node may come back within this time.
};

}  // namespace pipeline::engine
