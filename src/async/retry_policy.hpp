/// @file
/// Retry policy for failed requests: bounded exponential backoff with jitter.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace pipeline::async {

/// Bounds the retries of a request whose server is unreachable, overloaded or broken.
struct RetryPolicy {
  /// The pause doubles after each try, up to the maximum, with jitter.
  std::chrono::milliseconds first_pause{800}, max_pause{30'000};
  unsigned max_tries = 10;  ///< Including the first.
  /// The maximum number of tries without any answer of a server, not even an error.
  unsigned max_unanswered = max_tries;
  /// No retry begins later than this after the first try.
  std::chrono::milliseconds max_time = std::chrono::hours(24);

  /// Returns the policy for a caller that waits some 20 seconds at most.
  /// @param unanswered the new `max_unanswered`
  RetryPolicy for_short_wait(unsigned unanswered) const {
    auto policy = *this;
    policy.max_unanswered = unanswered;
    policy.max_time = std::chrono::seconds(20);
    return policy;
  }
};

/// Computes the pauses between tries.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy, std::uint32_t seed = std::random_device{}())
      : policy_(policy), random_(seed) {}
  /// Returns the next pause.
  /// @param wanted the pause that the server asks for (Retry-After), of which five minutes are
  /// granted at most; unset: the policy decides
  std::chrono::milliseconds next(std::optional<std::chrono::seconds> wanted = {});
  /// Counts a try that no server has answered; to be called before exhausted().
  void count_unanswered() { ++unanswered_; }
  /// Returns whether the policy permits no other try.
  bool exhausted() const {
    return tries_ + 1 >= policy_.max_tries || unanswered_ >= policy_.max_unanswered ||
           std::chrono::steady_clock::now() - began_ >= policy_.max_time;
  }
  /// Begins to count anew, after a success; `max_time` is still measured from the construction.
  void reset() { tries_ = unanswered_ = 0; }

 private:
  RetryPolicy policy_;
  std::minstd_rand random_;
  unsigned tries_ = 0, unanswered_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace pipeline::async
