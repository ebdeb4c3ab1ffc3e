/// @file
/// Decides whether and when a failed attempt is retried.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/journal.hpp"

namespace pipeline::engine {

class Retries {
 public:
  /// @param infrastructure number of retries after infrastructure failures, if the settings do not
  /// set it
  Retries(const RetrySettings& settings, unsigned infrastructure)
      : settings_(settings),
        infrastructure_(settings.max_infrastructure_retries.value_or(infrastructure)),
        delay_(settings.delay.value_or(Duration{0})) {}

  /// Counts the failure in `counts`. Returns the pause before the next attempt; nothing if the step
  /// has failed.
  std::optional<std::chrono::milliseconds> after(const Failure& failure, AttemptCounts& counts) {
    if (failure.kind == FailureKind::cancelled || failure.kind == FailureKind::not_started)
      return std::nullopt;
    if (failure.kind == FailureKind::infrastructure && counts.interruptions < infrastructure_) {
      ++counts.interruptions;
      return std::exchange(after_interruption_, std::min(2 * after_interruption_, longest_));
    }
    if (++counts.failures > settings_.max_retries.value_or(0)) return std::nullopt;
    return std::exchange(delay_, std::chrono::duration_cast<std::chrono::milliseconds>(
                                     delay_ * settings_.backoff.value_or(1.0)));
  }

 private:
  static constexpr std::chrono::milliseconds longest_ = std::chrono::minutes(1);
  const RetrySettings& settings_;
  unsigned infrastructure_;
  std::chrono::milliseconds delay_;
  std::chrono::milliseconds after_interruption_ =
      std::chrono::seconds(1);  ///< A lost node may come back within this time.
};

}  // namespace pipeline::engine
