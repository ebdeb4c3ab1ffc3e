/// @file
/// How long a step has printed nothing, and whether it makes progress nevertheless.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <optional>

#include "core/activity.hpp"

namespace pipeline::agent {

/// Times are milliseconds.
class Silence {
 public:
  /// @param limit 0: the step may be silent
  /// @param counts_progress a step that computes, reads or writes is not stalled
  Silence(long limit, bool counts_progress);
  void heard();
  /// Returns true once for each silence that reaches the limit.
  bool is_over_limit();
  /// Returns the shorter of `pause` and the time until there is something to look at; -1: never.
  int at_most(int pause) const;
  /// Looks whether the step makes progress, when it is time to. Returns how long ago it last did,
  /// if that is to be told: four times within the limit at most.
  /// @param left_out children that are not a part of the step
  std::optional<long> look_for_progress(std::initializer_list<pid_t> left_out);

 private:
  const long limit_, look_pause_;
  const bool counts_progress_;
  long heard_ = 0, marked_ = 0, next_look_ = 0, next_report_ = 0;
  core::Activity mark_;  ///< What was done until the last progress, at `marked_`.
  bool is_reported_ = false, has_news_ = false;
};

}  // namespace pipeline::agent
