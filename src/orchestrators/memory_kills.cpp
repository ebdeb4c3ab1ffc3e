#include "orchestrators/memory_kills.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

namespace pipeline::orchestrators {

std::optional<std::uint64_t> read_counter(const std::filesystem::path& file,
                                          std::string_view name) {
  std::ifstream in(file);
  std::uint64_t value;
  for (std::string each; in >> each >> value;)
    if (each == name) return value;
  return {};
}

MemoryKills::Account MemoryKills::taken_by_this_process = 0;

MemoryKills::MemoryKills(std::filesystem::path counters, Account& taken)
    : counters_(std::move(counters)), taken_(taken), before_(read_counter(counters_, "oom_kill")) {}

bool MemoryKills::take() const {
  if (!before_) return false;
  const auto now = read_counter(counters_, "oom_kill").value_or(0);
  for (auto taken = taken_.load(); now > std::max(taken, *before_);)
    if (taken_.compare_exchange_weak(taken, std::max(taken, *before_) + 1)) return true;
  return false;
}

}  // namespace pipeline::orchestrators
