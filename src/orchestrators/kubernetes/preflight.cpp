#include "orchestrators/kubernetes/preflight.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/joined.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/pages.hpp"
#include "kubernetes_api/permissions.hpp"
#include "model/findings.hpp"
#include "model/step_span.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/node_fit.hpp"
#include "orchestrators/kubernetes/references.hpp"
#include "orchestrators/kubernetes/refused_fields.hpp"
#include "settings/settings.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::ApiCall;
using kubernetes_api::ApiError;
using kubernetes_api::at;
using kubernetes_api::Client;
using kubernetes_api::list_at;
using kubernetes_api::Pages;
using kubernetes_api::text_at;
using nlohmann::json;

/// Steps whose Jobs are equal in everything that a cluster checks.
struct StepGroup {
  std::vector<const StepSpec*> steps;
  json job = nullptr;
  const json& pod() const { return at(job, "/spec/template/spec"); }
};

std::vector<StepGroup> step_groups(const std::vector<const StepSpec*>& steps) {
  std::vector<StepGroup> all;
  std::map<std::string, std::size_t> known;
  for (const auto* step : steps) {
    auto key = settings::to_json(step->settings).dump() +
               std::to_string(step->timeout.value_or(Duration{0}).count());
    for (const auto& [name, value] : step->environment) key += "\n" + name;
    for (const auto& [name, service] : step->services)
      key += "\n" + name + " " + service.image + " " + std::to_string(service.ready.port) + " " +
             std::to_string(service.resources.cpu_count.value_or(0)) + " " +
             std::to_string(service.resources.memory.value_or(0));
    const auto [group, is_new] = known.try_emplace(std::move(key), all.size());
    if (is_new) all.emplace_back();
    all[group->second].steps.push_back(step);
  }
  return all;
}

/// Returns the members of a node that are checked. The node also lists all of its images.
json checked_members(const json& node) {
  json kept;
  for (const auto* pointer : {"/metadata/name", "/metadata/labels", "/spec/taints",
                              "/spec/unschedulable", "/status/allocatable", "/status/conditions"})
    if (const auto& value = at(node, pointer); !value.is_null())
      kept[json::json_pointer(pointer)] = value;
  return kept;
}

}  // namespace

async::Task<json> nodes_of(Client& client) {
  json nodes = json::array();
  std::string next;
  Pages pages;
  try {
    do {
      std::string path = "/api/v1/nodes?limit=500";
      if (!next.empty()) path += "&continue=" + net::url_encode(next);
      const auto page = co_await client.get("list the nodes", std::move(path));
      for (const auto& node : list_at(page, "/items")) nodes.push_back(checked_members(node));
      next = pages.next(page);
    } while (!next.empty());
  } catch (const ApiError& error) {
    core::log::info(error.what());
    co_return nullptr;
  }
  co_return nodes;
}

namespace {

std::string path_of(const Client& client, const Reference& reference, std::string_view name) {
  if (reference.of_namespace) return client.path(reference.group, reference.plural, name);
  auto path = "/apis/" + std::string(reference.group) + "/" + std::string(reference.plural);
  return name.empty() ? path : path + "/" + net::url_encode(name);
}

class ClusterPreflight {
 public:
  ClusterPreflight(Client& client, ExampleJobOptions options)
      : client_(client), options_(std::move(options)) {}

  async::Task<ClusterCheck> run(const std::vector<const StepSpec*>& steps);

 private:
  async::Task<> check_rights();
  void make_jobs(std::vector<StepGroup>& all);
  async::Task<> check_reference(Reference reference, std::vector<const StepSpec*> steps);
  async::Task<std::vector<std::string>> names_of(Reference reference);
  async::Task<bool> find_version(Reference& reference);
  void check_size(const StepSpec& step);
  void check_nodes(const json& nodes, const StepGroup& alike);
  void check_gangs(const json& nodes, const StepGroup& alike);
  async::Task<> try_out(const StepGroup& alike);
  async::Task<> try_out_job_pod(const StepGroup& alike);

  Client& client_;
  ExampleJobOptions options_;
  model::Findings found_;
  std::set<std::string> group_versions_;   ///< API versions that a reference's `group` may name.
  std::vector<core::Diagnostic> refused_;  ///< Refusals whose messages name the steps.
};

async::Task<> ClusterPreflight::check_rights() {
  const auto missing = co_await kubernetes_api::missing_permissions(client_);
  if (missing.empty()) co_return;
  throw core::EnvironmentError(
      "you may not run steps in the namespace " + client_.access().name_space + " of " +
          client_.access().origin +
          ": these permissions are missing: " + core::joined(missing, ", "),
      {"`pipe kubernetes rbac` prints the Role that is needed; an "
       "administrator of the cluster applies it"});
}

/// Builds the Jobs. Steps that have no valid Job are reported and not checked further.
void ClusterPreflight::make_jobs(std::vector<StepGroup>& all) {
  for (auto& each : all) {
    try {
      each.job = example_job(*each.steps.front(), options_);
    } catch (const core::InputError& error) {
      for (auto diagnostic : error.diagnostics()) {
        diagnostic.code = "no-manifest";
        diagnostic.span = model::span_of(*each.steps.front());
        refused_.push_back(std::move(diagnostic));
      }
    }
  }
  std::erase_if(all, [](const StepGroup& each) { return each.job.is_null(); });
}

/// Returns names for a suggestion; none without permission to list them.
async::Task<std::vector<std::string>> ClusterPreflight::names_of(Reference reference) {
  std::vector<std::string> names;
  ApiCall call("list the " + std::string(reference.plural), "GET",
               path_of(client_, reference, {}) + "?limit=500");
  call.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  try {
    const auto list = co_await client_.call(std::move(call));
    for (const auto& item : list_at(list, "/items"))
      names.push_back(text_at(item, "/metadata/name"));
  } catch (const ApiError& error) {
    core::log::info(error.what());
  }
  co_return names;
}

/// Finds the version of a group that a cluster may lack and whose versions change: Kueue served
/// v1beta1, serves v1beta2 since 0.15, and newer ones serve only that.
async::Task<bool> ClusterPreflight::find_version(Reference& reference) {
  const std::string group(reference.group);
  std::string found;
  try {
    const auto answer = co_await client_.get("look for " + group, "/apis/" + group);
    found = text_at(answer, "/preferredVersion/groupVersion");
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
  }
  reference.group = *group_versions_.insert(found).first;
  co_return !found.empty();
}

/// Reports steps that refer to an object that does not exist.
async::Task<> ClusterPreflight::check_reference(Reference reference,
                                                std::vector<const StepSpec*> steps) {
  core::Diagnostic finding;
  finding.code = "not-there";
  if (!reference.group.empty() && reference.group.find('/') == reference.group.npos) {
    const bool is_served = co_await find_version(reference);
    if (!is_served) {
      finding.message = "the cluster has no Kueue, in whose queue '" + reference.name +
                        "' `kubernetes.queue_name` puts it";
      found_.add(steps, std::move(finding));
      co_return;
    }
  }
  ApiCall call("look for the " + std::string(reference.kind) + " " + reference.name, "GET",
               path_of(client_, reference, reference.name));
  // Only metadata, so that a Secret's content is not read.
  call.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  bool is_there = true;
  try {
    co_await client_.call(std::move(call));
  } catch (const ApiError& error) {
    is_there = error.status() != 404;
    if (is_there) core::log::info(error.what());
  }
  if (is_there) co_return;
  const std::string setting = "which `kubernetes." + std::string(reference.setting) + "` names";
  finding.message =
      "there is no " + std::string(reference.kind) + " '" + reference.name + "' in the " +
      (reference.of_namespace ? "namespace " + client_.access().name_space : "cluster") + ", " +
      setting;
  const auto names = co_await names_of(reference);
  finding.suggestion = core::did_you_mean(reference.name, names);
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "there are: " : ", ") + name;
  constexpr std::size_t max_names = 10;
  if (!names.empty() && names.size() <= max_names) finding.notes.push_back(std::move(list));
  found_.add(steps, std::move(finding));
}

/// Reports steps that no node takes, unless the cluster adds nodes as they are needed.
void ClusterPreflight::check_nodes(const json& nodes, const StepGroup& alike) {
  if (alike.steps.front()->settings->kubernetes.autoscaling.value_or(false)) return;
  auto reasons = why_none_fits(nodes, alike.pod());
  if (reasons.empty() && !nodes.empty()) return check_gangs(nodes, alike);
  const auto wants = requests_text(alike.pod());
  core::Diagnostic finding;
  finding.code = "no-node";
  finding.message =
      "no node of the cluster can ever take it" + (wants.empty() ? "" : ": it asks for " + wants);
  if (nodes.empty()) reasons.emplace_back("the cluster has no nodes");
  finding.notes = std::move(reasons);
  double most = 0;  // GPUs of a node that would do, had it more of them.
  for (const auto& node : nodes)
    if (const auto result = fit(node, alike.pod()); result.only_gpus)
      most = std::max(most, result.gpus);
  if (most >= 1)
    finding.suggestion =
        "no node has more than " + std::to_string(static_cast<unsigned>(most)) +
        ": ask for as many, as in `gpu_count: " + std::to_string(static_cast<unsigned>(most)) + "`";
  else
    finding.suggestion =
        "where nodes are made as they are needed: `kubernetes: {autoscaling: true}`";
  found_.add(alike.steps, std::move(finding));
}

/// Reports steps with more nodes than the cluster's empty nodes take at the same time.
void ClusterPreflight::check_gangs(const json& nodes, const StepGroup& alike) {
  std::uint64_t places = 0;
  for (const auto& node : nodes) places += pods_on(node, alike.pod());
  for (const auto* step : alike.steps) {
    if (step->nodes.count <= places) continue;
    const auto wants = requests_text(alike.pod());
    core::Diagnostic finding;
    finding.code = "no-node";
    finding.message = "has " + std::to_string(step->nodes.count) +
                      " nodes, and all of the cluster's together take " + std::to_string(places) +
                      " at the same time";
    if (!wants.empty()) finding.notes.push_back("each asks for " + wants);
    finding.suggestion =
        "where nodes are made as they are needed: `kubernetes: {autoscaling: true}`";
    const std::vector<const StepSpec*> only{step};
    found_.add(only, std::move(finding));
  }
}

/// Lets the cluster validate and admit the Job in a dry run, and reports refusals.
async::Task<> ClusterPreflight::try_out(const StepGroup& alike) {
  std::string query = "?dryRun=All";
  const auto version = co_await client_.version();
  if (version >= std::pair(1, 28))
    query += "&fieldValidation=Strict";  // Older servers do not know all fields that pipe sets.
  std::optional<ApiError> refusal;
  try {
    co_await client_.create("try out the Job of step '" + alike.steps.front()->name + "'",
                            client_.path("batch/v1", "jobs") + query, alike.job);
  } catch (const ApiError& error) {
    refusal = error;
  }
  if (!refusal) co_return co_await try_out_job_pod(alike);
  const std::string message = refusal->what();
  if (refusal->status() == 404 || refusal->status() == 401) throw ApiError(*refusal);
  const bool is_about_job =
      refusal->status() == 422 || refusal->status() == 400 || refusal->status() == 403;
  if (!is_about_job || refusal_of(message).kind == Refusal::Kind::full ||
      message.find("dry run") != message.npos) {
    core::log::info(message);
    co_return;
  }
  const std::string look = "`pipe render -o kubernetes` prints the Job";
  for (const auto& [field, reason] : refusal->causes()) {
    const auto setting = setting_of_field(field);
    found_.add(alike.steps, {"refused-by-cluster",
                             "the cluster does not take " +
                                 (setting.empty() ? "the Job of its settings" : setting),
                             {},
                             {field + ": " + reason},
                             look});
  }
  if (refusal->causes().empty())
    found_.add(alike.steps,
               {"refused-by-cluster", "the cluster does not take its Job", {}, {message}, look});
}

/// Reports whether the cluster would refuse the pod of the Job, to which other rules apply.
async::Task<> ClusterPreflight::try_out_job_pod(const StepGroup& alike) {
  auto refusal = co_await try_out_pod(client_, alike.job);
  if (!refusal) co_return;
  core::Diagnostic finding;
  finding.code = "refused-by-cluster";
  finding.message = "the cluster does not take its pod";
  finding.notes = {std::move(refusal->reason)};
  finding.suggestion = core::joined(refusal->hints, "; ");
  found_.add(alike.steps, std::move(finding));
}

/// Refuses a step whose parameters and variables make its Job larger than a cluster stores.
void ClusterPreflight::check_size(const StepSpec& step) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : step.parameters) bytes += value->dump().size();
  for (const auto& [name, value] : step.environment) bytes += value ? value->size() : 0;
  if (bytes < max_object_bytes / 10) return;  // The Job's other fields take far less than the rest.
  const auto size = example_job(step, options_).dump().size();
  if (size <= max_object_bytes) return;
  core::Diagnostic finding;
  finding.code = "too-large";
  finding.message = too_large("Job", size);
  finding.suggestion = shorter_line;
  const std::vector<const StepSpec*> only{&step};
  found_.add(only, std::move(finding));
}

async::Task<ClusterCheck> ClusterPreflight::run(const std::vector<const StepSpec*>& steps) {
  ClusterCheck check;
  co_await client_.version();
  co_await require_namespace(client_);
  co_await check_rights();
  const auto nodes = co_await nodes_of(client_);
  if (!nodes.is_null()) options_.gpu_models = check.gpu_models = models_on(nodes);
  auto all = step_groups(steps);
  make_jobs(all);
  for (const auto& each : all)
    for (const auto* step : each.steps) check_size(*step);
  std::map<Reference, std::vector<const StepSpec*>> references;
  for (const auto& each : all)
    for (const auto& reference : references_of(each.job)) {
      auto& users = references[reference];
      users.insert(users.end(), each.steps.begin(), each.steps.end());
    }
  for (const auto& [reference, users] : references) co_await check_reference(reference, users);
  if (!nodes.is_null())
    for (const auto& each : all) check_nodes(nodes, each);
  for (const auto& each : all) co_await try_out(each);
  check.obstacles = std::move(refused_);
  for (auto& each : found_.all()) check.obstacles.push_back(std::move(each));
  std::ranges::stable_sort(check.obstacles, {},
                           [](const core::Diagnostic& each) { return each.span.line; });
  co_return check;
}

}  // namespace

async::Task<ClusterCheck> check_steps(Client& client, const std::vector<const StepSpec*>& steps,
                                      ExampleJobOptions options) {
  ClusterPreflight preflight(client, std::move(options));
  co_return co_await preflight.run(steps);
}

}  // namespace pipeline::orchestrators::kubernetes
