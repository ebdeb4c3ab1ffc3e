#include "orchestrators/memory_kills.hpp"

#include <fstream>
#include <string>
#include <utility>

namespace pipeline {

std::optional<std::uint64_t> read_counter(const std::filesystem::path& file, std::string_view name) {
  std::ifstream in(file);
  std::uint64_t value;
  for (std::string each; in >> each >> value;)
    if (each == name) return value;
  return {};
}

MemoryKills::MemoryKills(std::filesystem::path counters) : counters_(std::move(counters)), before_(read_counter(counters_, "oom_kill")) {}

bool MemoryKills::any() const { return before_ && read_counter(counters_, "oom_kill").value_or(0) > *before_; }

}  // namespace pipeline
