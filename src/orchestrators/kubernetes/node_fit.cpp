#include "orchestrators/kubernetes/node_fit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/pod_resources.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::at;
using kubernetes_api::list_at;
using kubernetes_api::text_at;
using nlohmann::json;

using Amounts = std::map<std::string, double>;

double amount_of(const json& value) {
  const auto text = value.is_string() ? value.get<std::string>() : value.dump();
  return core::parse_quantity(text).value_or(0);
}

/// Returns a container's requests; a missing request equals the limit.
Amounts amounts_of(const json& container) {
  Amounts amounts;
  for (const auto* which : {"/resources/limits", "/resources/requests"})
    if (const auto& given = at(container, which); given.is_object())
      for (const auto& [name, value] : given.items()) amounts[name] = amount_of(value);
  return amounts;
}

/// Returns the pod's requests: containers run concurrently, init containers one after the other.
Amounts requests_of(const json& pod_spec) {
  Amounts sum;
  for (const auto& container : list_at(pod_spec, "/containers"))
    for (const auto& [name, amount] : amounts_of(container)) sum[name] += amount;
  for (const auto& container : list_at(pod_spec, "/initContainers"))
    for (const auto& [name, amount] : amounts_of(container))
      sum[name] = std::max(sum[name], amount);
  std::erase_if(sum, [](const auto& each) { return each.second <= 0; });
  return sum;
}

std::string number(double amount) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", amount);
  std::string result = text.data();
  while (result.ends_with('0')) result.pop_back();
  if (result.ends_with('.')) result.pop_back();
  return result;
}

bool is_bytes(const std::string& resource) {
  return resource == "memory" || resource == "ephemeral-storage" ||
         resource.starts_with("hugepages-");
}
std::string quantity_text(const std::string& resource, double amount) {
  return is_bytes(resource) ? core::format_bytes(static_cast<Bytes>(amount)) : number(amount);
}
std::string resource_text(const std::string& resource) {
  return resource == "cpu" ? "CPUs" : resource;
}

std::optional<std::string> label(const json& node, const std::string& key) {
  const auto& labels = at(node, "/metadata/labels");
  if (!labels.is_object() || !labels.contains(key) || !labels[key].is_string()) return std::nullopt;
  return labels[key].get<std::string>();
}

/// Returns the text as a whole number; nothing if it is not one.
std::optional<long long> whole_number(const std::string& text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// Returns why an item of matchExpressions or matchFields does not hold; empty if it does.
/// @param subject what the item is about, for messages: `label zone`
/// @param value   the node's value; nothing if it has none
std::string unmet(const std::string& subject, const std::optional<std::string>& value,
                  const json& requirement) {
  const auto op = text_at(requirement, "/operator");
  std::vector<std::string> values;
  for (const auto& each : list_at(requirement, "/values"))
    values.push_back(each.is_string() ? each.get<std::string>() : each.dump());
  std::string list;
  for (const auto& each : values) list += (list.empty() ? "" : " or ") + each;
  const bool is_in = value && std::find(values.begin(), values.end(), *value) != values.end();
  const std::string none = "no " + subject, other = subject + " " + value.value_or("");
  if (op == "In")
    return is_in ? "" : (value ? other + ", not " : none + ", which has to be ") + list;
  if (op == "NotIn") return is_in ? other : "";
  if (op == "Exists") return value ? "" : none;
  if (op == "DoesNotExist") return value ? other : "";
  const auto left = value ? whole_number(*value) : std::nullopt,
             right = values.empty() ? std::nullopt : whole_number(values.front());
  const bool holds = left && right && (op == "Gt" ? *left > *right : *left < *right);
  return holds ? ""
               : (value ? other + ", not " : none + ", which has to be ") +
                     (op == "Gt" ? "above " : "below ") + list;
}

/// Returns why the node satisfies none of the terms; empty if all requirements of one of them hold.
std::string unmet_terms(const json& node, const json& terms) {
  std::vector<std::string> reasons;
  for (const auto& term : terms) {
    std::string reason;
    for (const auto& requirement : list_at(term, "/matchExpressions")) {
      const auto key = text_at(requirement, "/key");
      if (reason.empty()) reason = unmet("label " + key, label(node, key), requirement);
    }
    for (const auto& requirement : list_at(term, "/matchFields"))
      if (reason.empty() && text_at(requirement, "/key") == "metadata.name")
        reason = unmet("name", text_at(node, "/metadata/name"), requirement);
    if (reason.empty()) return {};
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(std::move(reason));
  }
  std::string text;
  for (const auto& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

bool tolerates(const json& pod_spec, const json& taint) {
  const auto key = text_at(taint, "/key"), value = text_at(taint, "/value"),
             effect = text_at(taint, "/effect");
  const auto& tolerations = list_at(pod_spec, "/tolerations");
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const json& toleration) {
    const auto its_key = text_at(toleration, "/key"), its_effect = text_at(toleration, "/effect");
    if (!its_effect.empty() && its_effect != effect) return false;
    const bool exists = text_at(toleration, "/operator") == "Exists";
    if (its_key.empty()) return exists;
    return its_key == key && (exists || text_at(toleration, "/value") == value);
  });
}

/// Returns true for taints that the cluster itself sets while a node has a problem.
bool is_transient(const std::string& taint) {
  return taint.starts_with("node.kubernetes.io/") ||
         taint.starts_with("node.cloudprovider.kubernetes.io/") ||
         taint == "ToBeDeletedByClusterAutoscaler" ||
         taint == "DeletionCandidateOfClusterAutoscaler";
}

}  // namespace

std::string requests_text(const json& pod_spec) {
  std::vector<std::string> parts;
  for (const auto& [name, amount] : requests_of(pod_spec)) {
    auto part = quantity_text(name, amount) + " " + resource_text(name);
    if (part == "1 CPUs") part = "1 CPU";
    parts.insert(is_gpu(name) ? parts.begin() : parts.end(), std::move(part));
  }
  return core::joined(parts, ", ");
}

std::string gpus_of_node(const json& node) {
  std::vector<std::string> parts;
  if (const auto& allocatable = at(node, "/status/allocatable"); allocatable.is_object())
    for (const auto& [name, value] : allocatable.items())
      if (const auto amount = amount_of(value); is_gpu(name) && amount > 0)
        parts.push_back(number(amount) + " " + name);
  if (parts.empty()) return "no GPUs";
  if (const auto product = label(node, "nvidia.com/gpu.product")) parts.push_back(*product);
  return core::joined(parts, ", ");
}

NodeFit fit(const json& node, const json& pod_spec) {
  NodeFit result;
  bool only_gpus = true;
  const auto add_reason = [&](std::string reason, bool about_gpus = false) {
    only_gpus &= about_gpus;
    result.lasting.push_back(std::move(reason));
  };
  for (const auto& [name, wanted] : requests_of(pod_spec)) {
    const auto& allocatable = at(node, "/status/allocatable");
    const auto amount =
        allocatable.is_object() && allocatable.contains(name) ? amount_of(allocatable[name]) : 0;
    if (is_gpu(name)) result.gpus = amount;
    if (amount >= wanted) continue;
    add_reason((amount > 0 ? quantity_text(name, amount) + " of " + quantity_text(name, wanted)
                           : "none of " + quantity_text(name, wanted)) +
                   " " + resource_text(name),
               is_gpu(name));
  }
  if (const auto& selector = at(pod_spec, "/nodeSelector"); selector.is_object())
    for (const auto& [key, value] : selector.items())
      if (auto reason =
              unmet("label " + key, label(node, key), {{"operator", "In"}, {"values", {value}}});
          !reason.empty())
        add_reason(std::move(reason));
  const auto& required =
      at(pod_spec,
         "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  if (required.is_array())
    if (auto reason = unmet_terms(node, required); !reason.empty()) add_reason(std::move(reason));
  for (const auto& taint : list_at(node, "/spec/taints")) {
    const auto key = text_at(taint, "/key"), value = text_at(taint, "/value"),
               effect = text_at(taint, "/effect");
    if (effect == "PreferNoSchedule" || is_transient(key) || tolerates(pod_spec, taint)) continue;
    add_reason("the taint " + key + (value.empty() ? "" : "=" + value) + ":" + effect +
               ", which the step does not tolerate");
  }
  result.only_gpus = only_gpus && !result.lasting.empty();
  return result;
}

unsigned pods_on(const json& node, const json& pod_spec) {
  if (!fit(node, pod_spec).fits()) return 0;
  auto wanted = requests_of(pod_spec);
  wanted["pods"] = 1;
  double count = std::numeric_limits<unsigned>::max();
  const auto& allocatable = at(node, "/status/allocatable");
  for (const auto& [name, amount] : wanted)
    if (allocatable.is_object() && allocatable.contains(name))
      count = std::min(count, std::floor(amount_of(allocatable[name]) / amount));
  return static_cast<unsigned>(count);
}

Room room_on(const json& nodes, const json& pod_spec, bool autoscaling) {
  if (nodes.is_null()) return Room::unknown;
  auto room = autoscaling || nodes.empty() ? Room::later : Room::never;
  for (const auto& node : nodes) {
    if (!fit(node, pod_spec).fits()) continue;
    const auto& conditions = list_at(node, "/status/conditions");
    const bool is_ready = std::ranges::none_of(conditions, [](const json& each) {
      return text_at(each, "/type") == "Ready" && text_at(each, "/status") != "True";
    });
    if (is_ready && at(node, "/spec/unschedulable") != true) return Room::taken;
    room = Room::later;
  }
  return room;
}

std::vector<std::string> why_none_fits(const json& nodes, const json& pod_spec) {
  constexpr std::size_t max_lines = 10, max_names = 5;
  struct Group {
    std::vector<std::string> names;
    std::string gpus, reasons;
    std::size_t reason_count;
    double gpu_count;
  };
  std::vector<Group> groups;
  for (const auto& node : nodes) {
    const auto result = fit(node, pod_spec);
    if (result.fits()) return {};
    auto gpus = gpus_of_node(node), reasons = core::joined(result.lasting, "; ");
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) {
      return each.gpus == gpus && each.reasons == reasons;
    });
    if (group == groups.end())
      group = groups.insert(
          groups.end(),
          Group{{}, std::move(gpus), std::move(reasons), result.lasting.size(), result.gpus});
    group->names.push_back(text_at(node, "/metadata/name"));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::pair(a.reason_count, -a.gpu_count) < std::pair(b.reason_count, -b.gpu_count);
  });
  std::vector<std::string> lines;
  for (const auto& group : groups) {
    if (lines.size() == max_lines) {
      lines.push_back("... and others, which lack more");
      break;
    }
    auto names = group.names;
    const auto more = names.size() > max_names ? names.size() - max_names : 0;
    names.resize(names.size() - more);
    lines.push_back(core::joined(names, ", ") +
                    (more ? " and " + core::counted(more, "other") : "") + " (" + group.gpus +
                    ") " + (group.names.size() > 1 ? "have " : "has ") + group.reasons);
  }
  return lines;
}

}  // namespace pipeline::orchestrators::kubernetes
