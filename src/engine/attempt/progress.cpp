#include "engine/attempt/progress.hpp"

#include <algorithm>

namespace pipeline::engine {

std::optional<Clock::time_point> Progress::take(const orchestrators::ActivityByRank& all,
                                                Clock::time_point now) {
  std::optional<Clock::time_point> since;
  for (const auto& [rank, done] : all) {
    auto& mark = marks_.try_emplace(rank, Mark{done, now}).first->second;
    if (done.progressed)
      mark.time = std::max(mark.time, std::min(now, *done.progressed));
    else if (core::is_progress(mark.done, done, now - mark.time))
      mark = {done, now};
    since = since ? std::min(*since, mark.time) : mark.time;
  }
  return since;
}

}  // namespace pipeline::engine
