/// @file
/// The time without output of a step.
#pragma once

#include <ctime>

namespace pipeline::kubernetes_api {

/// Measures the time without output of a step.
class Silence {
 public:
  explicit Silence(long limit) : limit_(limit) { heard(); }
  void heard() {
    clock_gettime(CLOCK_MONOTONIC, &heard_);
    is_reported_ = false;
  }
  /// Returns true once for each silence that reaches the limit.
  bool is_over_limit() {
    if (limit_ == 0 || is_reported_ || left() > 0) return false;
    return is_reported_ = true;
  }
  /// Returns the shorter of `pause` and the time until the limit, in milliseconds; -1: never.
  int at_most(int pause) const {
    if (limit_ == 0 || is_reported_) return pause;
    const long own = left() > 0 ? left() : 0;
    return pause < 0 || own < pause ? static_cast<int>(own < 60'000 ? own : 60'000) : pause;
  }

 private:
  long left() const {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return limit_ - (now.tv_sec - heard_.tv_sec) * 1000 -
           (now.tv_nsec - heard_.tv_nsec) / 1'000'000;
  }
  const long limit_;
  timespec heard_{};
  bool is_reported_ = false;
};

}  // namespace pipeline::kubernetes_api
