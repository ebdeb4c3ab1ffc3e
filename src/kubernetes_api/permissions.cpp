#include "kubernetes_api/permissions.hpp"

#include <list>

#include "async/joinable_task.hpp"
#include "core/diagnostic.hpp"
#include "kubernetes_api/json.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;

/// Asks whether the permission's verb is allowed, and if not, adds it to `missing`.
async::Task<> check_verb(Client& client, const Permission& permission, std::string verb,
                         std::vector<std::string>& missing) {
  const auto slash = permission.resource.find('/');
  json attributes{{"namespace", client.access().name_space},
                  {"verb", verb},
                  {"group", permission.group},
                  {"resource", permission.resource.substr(0, slash)}};
  if (slash != std::string::npos) attributes["subresource"] = permission.resource.substr(slash + 1);
  json review{{"apiVersion", "authorization.k8s.io/v1"},
              {"kind", "SelfSubjectAccessReview"},
              {"spec", {{"resourceAttributes", std::move(attributes)}}}};
  const auto answer = co_await client.create(
      "ask for this user's permissions", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      std::move(review));
  if (at(answer, "/status/allowed") != true)
    missing.push_back(verb + " " + permission.resource +
                      (permission.group.empty() ? "" : "." + permission.group));
}

}  // namespace

const std::vector<Permission>& permissions() {
  static const std::vector<Permission> all{
      {"batch", "jobs", {"create", "get", "list", "watch", "delete"}},
      {"", "pods", {"get", "list", "watch", "delete"}},
      {"", "pods/log", {"get"}},
      {"", "events", {"list"}},
      {"", "secrets", {"create"}}};
  return all;
}

const std::vector<Permission>& driver_permissions() {
  static const std::vector<Permission> all{
      {"coordination.k8s.io", "leases", {"create", "get", "patch", "delete"}}};
  return all;
}

json role_manifests(const std::string& name_space, const std::string& subject) {
  json rules = json::array();
  auto all = permissions();
  all.insert(all.end(), driver_permissions().begin(), driver_permissions().end());
  // `pipe shell` opens a WebSocket, for which servers demand one verb or the other.
  for (const char* shell : {"pods/attach", "pods/exec"})
    all.push_back({"", shell, {"get", "create"}});
  // Not required: the reason of a wait in Kueue's queue, and the cluster's own gangs.
  all.push_back({"kueue.x-k8s.io", "workloads", {"list"}});
  all.push_back({"scheduling.k8s.io", "podgroups", {"create", "patch"}});
  for (auto& permission : all) {
    // Not required: with these verbs, a pod that a quota has refused is tried again at once, and a
    // pod's admission is tried out before the run.
    if (permission.resource == "jobs") permission.verbs.emplace_back("patch");
    if (permission.resource == "pods") permission.verbs.emplace_back("create");
    rules.push_back({{"apiGroups", {permission.group}},
                     {"resources", {permission.resource}},
                     {"verbs", permission.verbs}});
  }
  const auto colon = subject.find(':');
  const auto kind = subject.empty() ? "User" : subject.substr(0, colon),
             name = subject.empty()         ? "NAME"
                    : colon == subject.npos ? ""
                                            : subject.substr(colon + 1);
  if ((kind != "User" && kind != "Group" && kind != "ServiceAccount") || name.empty())
    throw core::InputError("'" + subject + "' is not a user, group or service account",
                           "write User:NAME, Group:NAME or ServiceAccount:NAME");
  json subject_entry{{"kind", kind}, {"name", name}};
  if (kind == "ServiceAccount")
    subject_entry["namespace"] = name_space;
  else
    subject_entry["apiGroup"] = "rbac.authorization.k8s.io";
  const json metadata{{"name", "pipe"}, {"namespace", name_space}};
  const json role{{"apiVersion", "rbac.authorization.k8s.io/v1"},
                  {"kind", "Role"},
                  {"metadata", metadata},
                  {"rules", std::move(rules)}};
  const json binding{
      {"apiVersion", "rbac.authorization.k8s.io/v1"},
      {"kind", "RoleBinding"},
      {"metadata", metadata},
      {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "pipe"}}},
      {"subjects", json::array({subject_entry})}};
  auto items = json::array({role, binding});
  if (kind == "ServiceAccount")
    items.push_back({{"apiVersion", "v1"},
                     {"kind", kind},
                     {"metadata", {{"name", name}, {"namespace", name_space}}}});
  return items;
}

async::Task<std::vector<std::string>> missing_permissions(Client& client,
                                                          const std::vector<Permission>& wanted) {
  std::vector<std::string> missing;
  const auto executor = co_await asio::this_coro::executor;
  std::list<async::JoinableTask> questions;
  for (const auto& permission : wanted)
    for (const auto& verb : permission.verbs)
      questions.emplace_back(executor, check_verb(client, permission, verb, missing));
  std::exception_ptr error;
  for (auto& question : questions) {
    co_await question.join();
    if (question.error()) error = question.error();
  }
  if (error) std::rethrow_exception(error);
  co_return missing;
}

}  // namespace pipeline::kubernetes_api
