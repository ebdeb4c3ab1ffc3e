/// @file
/// Retry policy for failed requests: bounded exponential backoff with jitter.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::async {

/// Bounds the retries of a request whose server is unreachable, overloaded or broken.
struct RetryPolicy {
  std::chrono::milliseconds first_pause{800},
      longest_pause{30'000};  ///< The pause doubles after each try, with jitter.
  unsigned most_tries = 10;
};

/// Computes the pauses between tries.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy, std::uint32_t seed = std::random_device{}())
      : policy_(policy), random_(seed) {}
  /// Returns the next pause.
  /// @param wanted pause that the server asked for (Retry-After); if unset, the policy decides
  std::chrono::milliseconds next(std::optional<std::chrono::seconds> wanted = {});
  bool exhausted() const { return tries_ + 1 >= policy_.most_tries; }
  void reset() { tries_ = 0; }

 private:
  RetryPolicy policy_;
  std::minstd_rand random_;
  unsigned tries_ = 0;
};

/// Pauses for `time`; returns early once `cancel`, if not null, is stopped.
Task<> pause_for(std::chrono::milliseconds time, core::CancelSource* cancel);

}  // namespace pipeline::async
