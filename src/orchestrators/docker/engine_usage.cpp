#include "orchestrators/docker/engine_usage.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/saturating.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;

/// Returns the number at this JSON pointer; 0 if there is none.
std::uint64_t stat_at(const json& stats, const char* pointer) {
  const json::json_pointer place(pointer);
  if (!stats.contains(place)) return 0;
  const auto& value = stats.at(place);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

/// Returns the bytes in use, without the files that the kernel has cached. The engine passes on the
/// kernel's names, which differ between versions 1 and 2 of control groups.
std::uint64_t memory_of_stats(const json& stats) {
  const auto any = [&](const char* first, const char* second) {
    const auto value = stat_at(stats, first);
    return value > 0 ? value : stat_at(stats, second);
  };
  const auto cached = any("/memory_stats/stats/total_cache", "/memory_stats/stats/file");
  const auto shared = any("/memory_stats/stats/total_shmem", "/memory_stats/stats/shmem");
  return core::saturating_subtract(stat_at(stats, "/memory_stats/usage"),
                                   core::saturating_subtract(cached, shared));
}

/// Returns the sum of an operation's bytes over all disks. Returns nothing for an empty list: no
/// disk was used, or their bytes are not counted. Version 1 writes `Read`, version 2 `read`.
/// @param initial `r` or `w`
std::optional<std::uint64_t> bytes_of(const json& stats, char initial) {
  const json::json_pointer place("/blkio_stats/io_service_bytes_recursive");
  if (!stats.contains(place) || !stats.at(place).is_array() || stats.at(place).empty())
    return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto& entry : stats.at(place)) {
    const auto found = entry.is_object() ? entry.find("op") : entry.end();
    if (found == entry.end() || !found->is_string()) continue;
    const auto& operation = found->get_ref<const std::string&>();
    constexpr char to_lower_case = 0x20;  // The bit by which letters of ASCII differ.
    if (!operation.empty() && (operation[0] | to_lower_case) == initial)
      sum += stat_at(entry, "/value");
  }
  return sum;
}

template <class Value>
void keep_largest(std::optional<Value>& to, Value value) {
  if (!to || *to < value) to = value;
}

}  // namespace

void add_engine_sample(const json& stats, core::Usage& usage) {
  using std::chrono::microseconds;
  if (!stats.is_object()) return;
  const auto all = stat_at(stats, "/cpu_stats/cpu_usage/total_usage");
  const auto memory = memory_of_stats(stats);
  if (all == 0 && memory == 0) return;                     // The container has ended.
  constexpr std::uint64_t most = std::uint64_t{1} << 62U;  // Sums of such numbers do not overflow.
  const auto user = stat_at(stats, "/cpu_stats/cpu_usage/usage_in_usermode");
  const auto system = stat_at(stats, "/cpu_stats/cpu_usage/usage_in_kernelmode");
  if (all < most && user < most && system < most) {
    // The parts are counted in ticks in version 1, their sum is exact.
    const auto share =
        user + system == 0 ? 1.0 : static_cast<double>(user) / static_cast<double>(user + system);
    const microseconds sum(static_cast<std::int64_t>(all / 1000));
    const microseconds own(static_cast<std::int64_t>(static_cast<double>(sum.count()) * share));
    if (sum >= usage.user.value_or(microseconds()) + usage.system.value_or(microseconds())) {
      usage.user = own;
      usage.system = sum - own;
    }
  }
  if (memory > 0) keep_largest(usage.peak_memory, memory);
  if (const auto read = bytes_of(stats, 'r')) keep_largest(usage.read, *read);
  // Version 1 does not count the kernel's own delayed writes for any group.
  const json::json_pointer only_of_version_1("/memory_stats/stats/total_cache");
  if (const auto written = bytes_of(stats, 'w'); written && !stats.contains(only_of_version_1))
    keep_largest(usage.written, *written);
}

}  // namespace pipeline::orchestrators::docker_engine
