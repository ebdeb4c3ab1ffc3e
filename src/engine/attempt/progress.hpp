/// @file
/// The time since which a rank of a step with nodes has made no progress.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/clock.hpp"
#include "orchestrators/gang.hpp"

namespace pipeline::engine {

/// The last progress of each rank (core::is_progress()).
class Progress {
 public:
  /// Compares what the ranks have done until now with the last call. Returns the time since which
  /// at least one rank has made no progress; nothing if `all` is empty.
  std::optional<Clock::time_point> take(const orchestrators::ActivityByRank& all,
                                        Clock::time_point now);

 private:
  struct Mark {
    core::Activity done;
    Clock::time_point time;
  };
  std::map<unsigned, Mark> marks_;  ///< The last progress of each rank.
};

}  // namespace pipeline::engine
