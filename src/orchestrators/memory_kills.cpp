#include "orchestrators/memory_kills.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "core/file.hpp"

namespace pipeline::orchestrators {

std::optional<std::uint64_t> read_counter(const std::filesystem::path& file,
                                          std::string_view name) {
  std::string text = "\n";
  const core::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[8192];  // The kernel generates such a file on each read.
  for (ssize_t count; opened && (count = ::read(opened.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  const auto line = text.find("\n" + std::string(name) + " ");
  if (line == text.npos) return {};
  const auto* digits = text.data() + line + name.size() + 2;
  std::uint64_t value = 0;
  const auto end = std::from_chars(digits, text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional(value) : std::nullopt;
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
