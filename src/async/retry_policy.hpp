/// @file
/// When a failed request is sent again: exponential backoff with jitter, bounded.
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
  std::chrono::milliseconds first_pause{800}, longest_pause{30'000};  ///< Doubles, with jitter.
  unsigned most_tries = 10;
};

/// The pauses between tries.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy, std::uint32_t seed = std::random_device{}())
      : policy_(policy), random_(seed) {}
  /// @param wanted by the server (Retry-After); none: the policy's own
  std::chrono::milliseconds next(std::optional<std::chrono::seconds> wanted = {});
  bool exhausted() const { return tries_ + 1 >= policy_.most_tries; }
  void reset() { tries_ = 0; }

 private:
  RetryPolicy policy_;
  std::minstd_rand random_;
  unsigned tries_ = 0;
};

/// Pauses for `time`; returns early once `cancel`, if there is one, is stopped.
Task<> pause_for(std::chrono::milliseconds time, core::CancelSource* cancel);

}  // namespace pipeline::async
