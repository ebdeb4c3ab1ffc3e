#include "agent/reported_usage.hpp"

#include <cstdint>

#include <nlohmann/json.hpp>

namespace pipeline::agent {

std::optional<std::uint64_t> reported_count(const nlohmann::json& object, const char* name) {
  constexpr auto max_count = std::uint64_t{1} << 53U;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto count = found->get<std::uint64_t>();
  return count <= max_count ? std::optional(count) : std::nullopt;
}

std::optional<std::chrono::milliseconds> read_reported_usage(const nlohmann::json& object,
                                                             core::Usage& usage) {
  const auto take = [&]<class Value>(const char* name, std::optional<Value>& value) {
    if (const auto count = reported_count(object, name))
      value = Value(static_cast<std::int64_t>(*count));
  };
  take("user_us", usage.user);
  take("system_us", usage.system);
  take("peak_memory", usage.peak_memory);
  take("read", usage.read);
  take("written", usage.written);
  take("memory_kills", usage.memory_kills);
  std::optional<std::chrono::milliseconds> running;
  take("running_ms", running);
  constexpr auto max_time = std::chrono::days(3650);
  if (running && (*running < max_time.zero() || *running > max_time)) running.reset();
  return running;
}

}  // namespace pipeline::agent
