#include "engine/attempt/progress.hpp"

#include <algorithm>

namespace pipeline::engine {
namespace {

constexpr std::chrono::milliseconds least_cpu{50};
constexpr int cpu_share = 50;
constexpr std::uint64_t least_bytes = 64 << 10;

}  // namespace

std::optional<Clock::time_point> Progress::take(const orchestrators::ActivityByRank& all,
                                                Clock::time_point now) {
  std::optional<Clock::time_point> since;
  for (const auto& [rank, done] : all) {
    auto& mark = marks_.try_emplace(rank, Mark{done, now}).first->second;
    const auto cpu = done.cpu - mark.done.cpu;
    const bool has_computed = cpu >= least_cpu && cpu * cpu_share >= now - mark.time;
    // Less than what was counted before: a process has ended, and another one may have begun.
    const bool has_moved = done.bytes >= mark.done.bytes + least_bytes ||
                           done.bytes < mark.done.bytes || done.cpu < mark.done.cpu;
    if (has_computed || has_moved) mark = {done, now};
    since = since ? std::min(*since, mark.time) : mark.time;
  }
  return since;
}

}  // namespace pipeline::engine
