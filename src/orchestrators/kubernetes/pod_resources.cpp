#include "orchestrators/kubernetes/pod_resources.hpp"

#include <algorithm>
#include <cmath>

#include "core/diagnostic.hpp"
#include "orchestrators/kubernetes/short_forms.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* usual_gpu = "nvidia.com/gpu";

/// Returns the number of GPUs in `settings.resources`.
unsigned gpu_count(const StepSpec& step) {
  const auto request = settings::gpu_request(step.settings->resources);
  const auto refuse = [&](const std::string& what, const std::string& suggestion) {
    return core::InputError(
        "step '" + step.name + "' " + what +
            ", and a cluster gives GPUs by number: it chooses which, and on which node",
        suggestion);
  };
  switch (request.selection) {
    case settings::GpuRequest::Selection::none: return 0;
    case settings::GpuRequest::Selection::count:
    case settings::GpuRequest::Selection::first: return request.count;
    case settings::GpuRequest::Selection::devices:
      throw refuse("names its GPUs", "ask for a number of them: `gpu_count: " +
                                         std::to_string(request.devices.size()) + "`");
    case settings::GpuRequest::Selection::all: break;
  }
  if (request.if_present) return 0;
  throw refuse("asks for all GPUs of its machine", "say how many: `gpu_count: 1`");
}

StringMap limits_of(const StepSpec& step) {
  const auto& asked = step.settings->resources;
  StringMap limits;
  // A thousandth is the least that the API takes; `0m` would be no limit.
  if (asked.cpu_count)
    limits["cpu"] = std::to_string(std::max(1LL, std::llround(*asked.cpu_count * 1000))) + "m";
  if (asked.memory) limits["memory"] = std::to_string(*asked.memory);
  if (const auto gpus = gpu_count(step); gpus > 0)
    limits[step.settings->kubernetes.gpu_resource.value_or(usual_gpu)] = std::to_string(gpus);
  for (const auto& [name, amount] : step.settings->kubernetes.resources.limits)
    limits[name] = amount;
  return limits;
}

}  // namespace

StringMap gpus_on_cluster(const StepSpec& step) {
  auto limits = limits_of(step);
  std::erase_if(limits, [&](const auto& limit) {
    return !is_gpu(limit.first) && limit.first != step.settings->kubernetes.gpu_resource;
  });
  return limits;
}

/// Requests equal limits, so that a node that accepts the step has all of its resources.
json pod_resources(const StepSpec& step) {
  const auto limits = limits_of(step);
  auto requests = limits;
  for (const auto& [name, amount] : step.settings->kubernetes.resources.requests)
    requests[name] = amount;
  json both = json::object();
  if (!limits.empty()) both["limits"] = limits;
  if (!requests.empty()) both["requests"] = requests;
  return both;
}

json pod_tolerations(const StepSpec& step) {
  json tolerations = json::array();
  const auto add = [&](json one) {
    if (std::find(tolerations.begin(), tolerations.end(), one) == tolerations.end())
      tolerations.push_back(std::move(one));
  };
  const auto& given = *step.settings->kubernetes.tolerations;
  for (const auto& each : given) add(toleration_of(each));
  for (const auto& [name, amount] : limits_of(step)) {
    if (!is_extended(name)) continue;
    // Slices and shares of NVIDIA's GPUs are on nodes with the taint of whole ones.
    if (name.starts_with("nvidia.com/")) add({{"key", usual_gpu}, {"operator", "Exists"}});
    add({{"key", name}, {"operator", "Exists"}});
  }
  return tolerations;
}

}  // namespace pipeline::orchestrators::kubernetes
