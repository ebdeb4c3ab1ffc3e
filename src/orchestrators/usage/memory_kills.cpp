#include "orchestrators/usage/memory_kills.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "orchestrators/usage/kernel_file.hpp"

namespace pipeline::orchestrators::usage {

std::optional<std::uint64_t> read_counter(const std::filesystem::path& file,
                                          std::string_view name) {
  const auto text = "\n" + kernel_text(file);
  const auto line = text.find("\n" + std::string(name) + " ");
  if (line == text.npos) return {};
  const auto* digits = text.data() + line + name.size() + 2;
  std::uint64_t value = 0;
  const auto end = std::from_chars(digits, text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::filesystem::path own_kill_counter(const std::filesystem::path& proc,
                                       const std::filesystem::path& mounts) {
  std::vector<std::filesystem::path> candidates;
  // In a container, the path may be that on the host, while the mount shows only the container's
  // own group.
  for (const auto& own : group_memberships(proc))
    if (own.is_unified())
      candidates.push_back(mounts / own.path / "memory.events.local");
    else if (own.has("memory"))
      for (const auto& group : {mounts / "memory" / own.path, mounts / "memory"})
        candidates.push_back(group / "memory.oom_control");
  for (const auto& file : candidates)
    if (read_counter(file, "oom_kill")) return file;
  return MemoryKills::of_machine;
}

MemoryKills::Account MemoryKills::taken_of_machine = 0, MemoryKills::taken_of_group = 0;

MemoryKills::MemoryKills(std::filesystem::path counters)
    : MemoryKills(counters, counters == of_machine ? taken_of_machine : taken_of_group) {}

MemoryKills::MemoryKills(std::filesystem::path counters, Account& taken)
    : counters_(std::move(counters)), taken_(taken), before_(read_counter(counters_, "oom_kill")) {}

bool MemoryKills::take() const {
  if (!before_) return false;
  const auto now = read_counter(counters_, "oom_kill").value_or(0);
  for (auto taken = taken_.load(); now > std::max(taken, *before_);)
    if (taken_.compare_exchange_weak(taken, std::max(taken, *before_) + 1)) return true;
  return false;
}

}  // namespace pipeline::orchestrators::usage
