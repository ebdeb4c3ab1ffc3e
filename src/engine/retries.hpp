/// @file
/// When a failed attempt is repeated, and after what pause.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/journal.hpp"

namespace pipeline::engine {

class Retries {
 public:
  /// @param infrastructure how often attempts are repeated that end for no fault of the step, where
  /// the settings do not say
  Retries(const RetrySettings& settings, unsigned infrastructure)
      : settings_(settings),
        infrastructure_(settings.max_infrastructure_retries.value_or(infrastructure)),
        delay_(settings.delay.value_or(Duration{0})) {}

  /// Counts the failure among the step's efforts. Returns the pause before the next attempt;
  /// nothing: the step has failed.
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
      std::chrono::seconds(1);  ///< A node may be on its way back.
};

}  // namespace pipeline::engine
