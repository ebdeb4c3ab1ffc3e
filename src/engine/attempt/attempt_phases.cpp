#include "engine/attempt/attempt_phases.hpp"

#include <algorithm>

namespace pipeline::engine {

using Clock = std::chrono::steady_clock;

core::Phases phases_of(const orchestrators::AttemptResult& result, Clock::time_point start,
                       Clock::time_point began, Clock::time_point ended, Clock::time_point now) {
  constexpr auto none = Clock::duration::zero();
  const auto between = [none](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::max(none, to - from));
  };
  began = result.began.value_or(began);
  ended = result.ended.value_or(ended);
  const auto in = std::clamp<Clock::duration>(result.moved_in, none, std::max(none, began - start));
  const auto out = std::clamp<Clock::duration>(result.moved_out, none, std::max(none, now - ended));
  core::Phases phases;
  phases.preparing = between(start + in, began);
  phases.transfers = between(start, start + in + out);
  phases.running = between(began, ended);
  phases.storing = between(ended + out, now);
  return phases;
}

}  // namespace pipeline::engine
