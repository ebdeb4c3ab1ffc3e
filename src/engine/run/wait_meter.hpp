/// @file
/// Measures how long a step waits, and for what.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "engine/clock.hpp"

namespace pipeline::engine {

/// The waits of a step, which follow one another.
class WaitMeter {
 public:
  using Waits = std::map<std::string, std::chrono::milliseconds>;  ///< Keyed by what was awaited.

  /// Begins anew.
  void restart() {
    begin_ = last_ = Clock::now();
    waits_.clear();
  }

  /// Counts the time since the last call as a wait for `awaited`.
  void add(const std::string& awaited) {
    const auto now = Clock::now();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_);
    if (waited.count() == 0) return;  // The rest is counted with the next wait.
    waits_[awaited] += waited;
    last_ = now;
  }

  Clock::time_point begin() const { return begin_; }
  const Waits& waits() const { return waits_; }

 private:
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
  Waits waits_;
};

}  // namespace pipeline::engine
