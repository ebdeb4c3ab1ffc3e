#include "orchestrators/kubernetes/affinity.hpp"

#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "core/diagnostic.hpp"
#include "gpu/model.hpp"
#include "gpu/placement_terms.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/pod_resources.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using gpu::NodeTerm;
using nlohmann::json;
using Terms = std::vector<NodeTerm>;  ///< At least one of the terms has to hold; none: any node.

/// The label of GPU models depends on the cluster: NVIDIA's and AMD's feature discovery, GKE, EKS,
/// Karpenter.
constexpr std::array model_labels{
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name"};

/// Returns terms that hold if both arguments hold.
Terms both(const Terms& left, const Terms& right) {
  if (left.empty()) return right;
  if (right.empty()) return left;
  Terms all;
  for (const auto& one : left)
    for (const auto& other : right) {
      all.push_back(one);
      all.back().insert(all.back().end(), other.begin(), other.end());
    }
  return all;
}

Terms placement_terms(const StepSpec& step) {
  gpu::Placement all;
  all.kind = gpu::Placement::Kind::all_of;
  for (const auto& text : step.settings->resources.placement_constraints.items()) {
    auto parsed = gpu::parse_placement(text);
    if (const auto* error = std::get_if<gpu::PlacementError>(&parsed))
      throw core::InputError(
          "step '" + step.name + "': the placement constraint `" + text + "`: " + error->message,
          error->suggestion);
    all.operands.push_back(std::get<gpu::Placement>(std::move(parsed)));
  }
  if (all.operands.empty()) return {};
  auto terms = gpu::node_selector_terms(all);
  if (const auto* why = std::get_if<std::string>(&terms))
    throw core::InputError("step '" + step.name +
                           "': a cluster cannot honour its placement constraints: " + *why);
  return std::get<Terms>(std::move(terms));
}

/// Returns a GPU's name as the value of a label, in which NVIDIA and others replace spaces and
/// brackets by `-`.
std::string as_label(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  return text;
}

Terms model_terms(const std::string& wanted, const GpuModels& models) {
  Terms terms;
  for (const auto& [label, values] : models) {
    std::vector<std::string> matching;
    for (const auto& value : values)
      if (gpu::model_matches(wanted, value)) matching.push_back(value);
    if (!matching.empty()) terms.push_back({{label, "In", std::move(matching)}});
  }
  if (terms.empty()) terms.push_back({{model_labels.front(), "In", {as_label(wanted)}}});
  return terms;
}

/// Returns terms over the labels that NVIDIA's GPU feature discovery sets on nodes.
Terms gpu_terms(const StepSpec& step, const GpuModels& models) {
  const auto request = settings::gpu_request(step.settings->resources);
  Terms terms;
  if (!request.wanted() || gpus_on_cluster(step).empty()) return terms;
  if (request.model) terms = model_terms(*request.model, models);
  if (request.min_memory) {
    constexpr Bytes mebibyte = 1 << 20;
    const auto least = (gpu::min_reported_memory(*request.min_memory) + mebibyte - 1) / mebibyte;
    terms = both(terms, {{{"nvidia.com/gpu.memory", "Gt", {std::to_string(least - 1)}}}});
  }
  if (request.min_capability) {
    const std::string major = "nvidia.com/gpu.compute.major",
                      minor = "nvidia.com/gpu.compute.minor";
    const auto& least = *request.min_capability;
    Terms enough{{{major,
                   "Gt",
                   {std::to_string(static_cast<int>(least.major) - (least.minor == 0 ? 1 : 0))}}}};
    if (least.minor > 0)
      enough.push_back({{major, "In", {std::to_string(least.major)}},
                        {minor, "Gt", {std::to_string(static_cast<int>(least.minor) - 1)}}});
    terms = both(terms, enough);
  }
  return terms;
}

json as_json(const Terms& terms) {
  json list = json::array();
  for (const auto& term : terms) {
    json expressions = json::array();
    for (const auto& requirement : term) {
      json one{{"key", requirement.key}, {"operator", requirement.op}};
      if (!requirement.values.empty()) one["values"] = requirement.values;
      expressions.push_back(std::move(one));
    }
    list.push_back({{"matchExpressions", std::move(expressions)}});
  }
  return list;
}

/// Returns terms that hold if one of ours and one of the user's holds: all pairs of them.
json joined(const json& ours, const json& theirs) {
  json all = json::array();
  for (const auto& own : ours)
    for (const auto& their : theirs) {
      json term = their;
      auto& expressions = term["matchExpressions"];
      if (!expressions.is_array()) expressions = json::array();
      for (const auto& expression : own["matchExpressions"]) expressions.push_back(expression);
      all.push_back(std::move(term));
    }
  return all;
}

/// Returns a preference for other nodes than these. A field selector accepts only one value in an
/// expression.
json preference_against(const std::vector<std::string>& nodes) {
  json fields = json::array();
  for (const auto& node : nodes)
    fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}});
  return {{"weight", 100}, {"preference", {{"matchFields", std::move(fields)}}}};
}

/// Returns a preference for these nodes, by the label that has the node's name on nearly all
/// clusters; on others, no node is preferred.
json preference_for(unsigned weight, const std::vector<std::string>& nodes) {
  json expression, term;
  expression["key"] = "kubernetes.io/hostname";
  expression["operator"] = "In";
  expression["values"] = nodes;
  term["weight"] = weight;
  term["preference"]["matchExpressions"].push_back(std::move(expression));
  return term;
}

}  // namespace

GpuModels models_on(const json& nodes) {
  GpuModels models;
  for (const auto& node : nodes)
    for (const auto* label : model_labels) {
      const auto& labels = kubernetes_api::at(node, "/metadata/labels");
      if (labels.is_object() && labels.contains(label) && labels[label].is_string())
        models[label].insert(labels[label].get<std::string>());
    }
  return models;
}

json pod_affinity(const StepSpec& step, const GpuModels& models,
                  const std::vector<std::string>& avoided, const PreferredNodes& preferred) {
  auto terms = placement_terms(step);
  if (const auto& type = step.settings->resources.instance_type)
    terms = both(terms, {{{"node.kubernetes.io/instance-type", "In", {*type}}}});
  terms = both(terms, gpu_terms(step, models));
  json affinity;
  for (const auto& [key, value] : step.settings->kubernetes.affinity) affinity[key] = *value;
  const auto prefer = [&affinity](json preference) {
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].push_back(
        std::move(preference));
  };
  if (!avoided.empty()) prefer(preference_against(avoided));
  for (const auto& [weight, nodes] : preferred) prefer(preference_for(weight, nodes));
  if (terms.empty()) return affinity;
  auto& required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                           ["nodeSelectorTerms"];
  required =
      required.is_array() && !required.empty() ? joined(as_json(terms), required) : as_json(terms);
  return affinity;
}

}  // namespace pipeline::orchestrators::kubernetes
