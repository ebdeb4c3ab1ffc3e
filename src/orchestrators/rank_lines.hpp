/// @file
/// The lines that say which process of a step with nodes they concern: output with a rank before
/// it, and an agent's reports of ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pipeline::orchestrators {

/// Returns `[3] ` before a line of rank 3 in a step's log.
std::string rank_prefix(unsigned rank);
/// Returns the rank and the line without rank_prefix(); nothing for a line without one.
std::optional<std::pair<unsigned, std::string_view>> rank_of_line(std::string_view line);

/// The end of a process, as the agent of its node reports it.
struct RankEnd {
  unsigned rank = 0;
  int code = 0;             ///< Exit code, or 128 plus the number of the signal.
  bool has_failed = false;  ///< Was not stopped, and the agent does not restart it.
  std::chrono::steady_clock::time_point time;
  std::chrono::microseconds cpu{};
  std::uint64_t peak_memory = 0;  ///< Bytes.
};
/// Returns the end that an agent reports in this line of its output; nothing for any other line.
std::optional<RankEnd> rank_end_of(std::string_view line);

}  // namespace pipeline::orchestrators
