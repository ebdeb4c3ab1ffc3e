#include "orchestrators/kubernetes/pod_usage.hpp"

#include <nlohmann/json.hpp>

#include "agent/reported_usage.hpp"
#include "core/bounded_json.hpp"
#include "gpu/smi_samples.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

/// Returns a number from 0 to 1; nothing for other values.
std::optional<double> pod_share(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto share = found->get<double>();
  return share >= 0 && share <= 1 ? std::optional(share) : std::nullopt;
}

std::string pod_text(const json& object, const char* name) {
  const auto found = object.find(name);
  const auto text =
      found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  return text.size() < gpu::SmiSamples::max_text ? text : std::string();
}

void take_pod_gpu(const json& entry, AttemptResult& result) {
  const auto uuid = pod_text(entry, "uuid");
  const auto mean = agent::reported_count(entry, "mean_memory"),
             peak = agent::reported_count(entry, "peak_memory"),
             memory = agent::reported_count(entry, "memory");
  if (uuid.empty() || !mean || !peak || !memory || result.usage.of_gpu(uuid)) return;
  constexpr std::uint64_t largest_index = 1000;
  const auto index = std::min(agent::reported_count(entry, "index").value_or(0), largest_index);
  result.gpus.push_back({uuid, static_cast<unsigned>(index), pod_text(entry, "model")});
  result.usage.gpus.push_back(
      {uuid, pod_share(entry, "mean_load"), pod_share(entry, "peak_load"), *mean, *peak, *memory});
}

}  // namespace

std::chrono::nanoseconds time_of_fetch(const json& pod) {
  const auto& status =
      kubernetes_api::named_at(pod, "/status/initContainerStatuses", agent_container);
  const auto& state = kubernetes_api::at(status, "/state/terminated");
  const auto from = kubernetes_api::parse_time(kubernetes_api::text_at(state, "/startedAt"));
  const auto to = kubernetes_api::parse_time(kubernetes_api::text_at(state, "/finishedAt"));
  return from && to && *to > *from ? *to - *from : std::chrono::nanoseconds{};
}

std::optional<std::chrono::milliseconds> read_pod_usage(std::string_view text,
                                                        AttemptResult& result) {
  const auto used = core::parse_json(text);
  if (!used.is_object()) return std::nullopt;
  if (const auto gpus = used.find("gpus"); gpus != used.end() && gpus->is_array())
    for (const auto& entry : *gpus)
      if (entry.is_object() && result.gpus.size() < gpu::SmiSamples::max_gpus)
        take_pod_gpu(entry, result);
  return agent::read_reported_usage(used, result.usage);
}

}  // namespace pipeline::orchestrators::kubernetes
