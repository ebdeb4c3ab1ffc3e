#include "orchestrators/kubernetes/pod_usage.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"

namespace pipeline::orchestrators {

std::optional<std::chrono::milliseconds> read_pod_usage(std::string_view text, core::Usage& usage) {
  const auto used = core::parse_json(text);
  if (!used.is_object()) return std::nullopt;
  const auto take = [&]<class Value>(const char* name, std::optional<Value>& value) {
    const auto found = used.find(name);
    constexpr auto largest = std::uint64_t{1} << 53U;  // More microseconds than 200 years have.
    if (found != used.end() && found->is_number_unsigned() &&
        found->template get<std::uint64_t>() <= largest)
      value = Value(found->template get<std::int64_t>());
  };
  take("user_us", usage.user);
  take("system_us", usage.system);
  take("peak_memory", usage.peak_memory);
  take("read", usage.read);
  take("written", usage.written);
  std::optional<std::chrono::milliseconds> running;
  take("running_ms", running);
  constexpr auto most = std::chrono::days(3650);
  if (running && (*running < most.zero() || *running > most)) running.reset();
  return running;
}

}  // namespace pipeline::orchestrators
