#include "orchestrators/rank_lines.hpp"

#include <charconv>
#include <sstream>

namespace pipeline::orchestrators {

std::string rank_prefix(unsigned rank) { return "[" + std::to_string(rank) + "] "; }

std::optional<std::pair<unsigned, std::string_view>> rank_of_line(std::string_view line) {
  unsigned rank = 0;
  if (!line.starts_with('[')) return std::nullopt;
  const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), rank);
  const auto length = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || !line.substr(length).starts_with("] ")) return std::nullopt;
  return std::pair(rank, line.substr(length + 2));
}

std::optional<RankEnd> rank_end_of(std::string_view line) {
  if (!line.starts_with('!')) return std::nullopt;
  std::istringstream words{std::string(line.substr(1))};
  RankEnd end;
  std::string how;
  std::int64_t time = 0;
  constexpr std::int64_t max_time = std::int64_t{1} << 52;  // Microseconds; a later time overflows.
  if (!(words >> end.rank >> end.code >> how >> time) || time < 0 || time > max_time)
    return std::nullopt;
  end.has_failed = how == "failed";
  const auto age =
      std::chrono::system_clock::now().time_since_epoch() - std::chrono::microseconds(time);
  end.time = std::chrono::steady_clock::now() -
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(age);
  // An agent does not write larger numbers, but a step can imitate its lines; the store could not
  // read them back.
  constexpr std::int64_t max_cpu = std::int64_t{1} << 49, max_memory = std::int64_t{1} << 40;
  std::int64_t cpu = -1, memory = -1;
  if (words >> cpu >> memory && cpu >= 0 && cpu <= max_cpu && memory >= 0 && memory <= max_memory) {
    end.cpu = std::chrono::microseconds(cpu);
    end.peak_memory = static_cast<std::uint64_t>(memory) * 1024;
  }
  return end;
}

}  // namespace pipeline::orchestrators
