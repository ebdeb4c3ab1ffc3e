/// @file
/// Which rank of a step with nodes does nothing, and since when.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/clock.hpp"
#include "orchestrators/gang.hpp"

namespace pipeline::engine {

/// When each rank has last made progress (core::is_progress()).
class Progress {
 public:
  /// Takes what the ranks have done until now. Returns the time since which one of them at least
  /// has made no progress; nothing if that is not known.
  std::optional<Clock::time_point> take(const orchestrators::ActivityByRank& all,
                                        Clock::time_point now);

 private:
  struct Mark {
    core::Activity done;
    Clock::time_point time;
  };
  std::map<unsigned, Mark> marks_;  ///< The last progress of each.
};

}  // namespace pipeline::engine
