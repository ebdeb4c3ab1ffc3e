/// @file
/// Measures how long a step has printed nothing, and whether the silent step makes progress.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <optional>

#include "core/activity.hpp"

namespace pipeline::agent {

/// The silence of a step. All times are milliseconds.
class Silence {
 public:
  /// @param limit 0: the step may be silent
  /// @param counts_progress a step that computes, reads or writes is not stalled
  Silence(long limit, bool counts_progress);
  /// Begins a new silence, because the step has printed something or made progress.
  void restart();
  /// Returns true once for each silence that reaches the limit.
  bool is_over_limit();
  /// Returns the shorter of `pause` and the time until the next call of is_over_limit() or
  /// look_for_progress() can matter. A `pause` of -1 is an endless one, and so is the result -1.
  int limited_pause(int pause) const;
  /// Looks whether the step makes progress, if the last look is long enough ago. Returns how long
  /// ago the last progress was if that is to be reported, which is at most four times within the
  /// limit; otherwise nothing.
  /// @param left_out children that are not a part of the step
  std::optional<long> look_for_progress(std::initializer_list<pid_t> left_out);

 private:
  const long limit_, look_pause_;
  const bool counts_progress_;
  long last_sign_ = 0;   ///< Time of the step's last output or progress.
  long marked_ = 0;      ///< Time of the last progress.
  core::Activity mark_;  ///< The step's activity at that time.
  long next_look_ = 0, next_report_ = 0;
  bool is_reported_ = false;  ///< is_over_limit() has returned true for this silence.
  bool has_news_ = false;     ///< There is progress that look_for_progress() has not returned.
};

}  // namespace pipeline::agent
