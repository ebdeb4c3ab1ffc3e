#include "orchestrators/kubernetes/driver.hpp"

#include <algorithm>
#include <chrono>

#include "core/joined.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/lease.hpp"
#include "kubernetes_api/permissions.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/pod_events.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::ApiError;
using kubernetes_api::Client;
using kubernetes_api::text_at;
using nlohmann::json;

std::vector<kubernetes_api::Permission> all_permissions() {
  auto all = kubernetes_api::permissions();
  all.insert(all.end(), kubernetes_api::driver_permissions().begin(),
             kubernetes_api::driver_permissions().end());
  return all;
}

/// Returns the advice to make the service account, or to complete its Role.
std::string rbac_advice(const std::string& name_space, const std::string& account) {
  return "`pipe kubernetes rbac --namespace " + name_space +
         " --subject ServiceAccount:" + account +
         " | kubectl apply -f -` makes the account and its Role";
}

/// Returns false only if the account is known not to exist.
async::Task<bool> has_account(Client& client, std::string name) {
  try {
    co_await client.get("look for the service account " + name,
                        client.path("", "serviceaccounts", name));
  } catch (const ApiError& error) {
    if (error.status() != 403 && error.status() != 404) throw;
    co_return error.status() != 404;
  }
  co_return true;
}

bool has_ended(const json& job) {
  for (const auto& condition : kubernetes_api::list_at(job, "/status/conditions")) {
    const auto type = text_at(condition, "/type");
    if ((type == "Complete" || type == "Failed") && text_at(condition, "/status") == "True")
      return true;
  }
  return !text_at(job, "/metadata/deletionTimestamp").empty();
}

/// Creates the object. An existing one of the same name was created by this run, because names
/// contain the run.
async::Task<> make(Client& client, std::string group, std::string kind, json object) {
  try {
    co_await client.create(
        "create the " + text_at(object, "/kind") + " " + text_at(object, "/metadata/name"),
        client.path(group, kind), object);
  } catch (const ApiError& error) {
    if (error.status() != 409) throw;
  }
}

/// Returns the Job of this name; null if there is none.
async::Task<json> job_called(Client& client, std::string name) {
  try {
    co_return co_await client.get("read the Job " + name, client.path("batch/v1", "jobs", name));
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
  }
  co_return json();
}

}  // namespace

async::Task<std::vector<std::string>> check_driver(Client& client, std::string account) {
  co_await client.version();
  co_await require_namespace(client);
  const auto& access = client.access();
  const auto wanted = all_permissions();
  const auto ours = co_await kubernetes_api::missing_permissions(client, wanted);
  if (!ours.empty())
    throw core::EnvironmentError("you may not start a driver in the namespace " +
                                     access.name_space + " of " + access.origin +
                                     ": these permissions are missing: " + core::joined(ours, ", "),
                                 {"`pipe kubernetes rbac` prints the Role that is needed; an "
                                  "administrator of the cluster applies it"});
  const bool is_there = co_await has_account(client, account);
  if (!is_there)
    throw core::EnvironmentError(
        "there is no service account '" + account + "' in the namespace " + access.name_space +
            ", as which the run's driver is to act",
        {rbac_advice(access.name_space, account),
         "or name another account by --service-account, or by `service_account` of a profile"});
  auto as_driver = access;
  as_driver.identity.impersonate = {"Impersonate-User: system:serviceaccount:" + access.name_space +
                                    ":" + account};
  Client driver_client(client.loop(), std::move(as_driver), client.retry_policy());
  std::vector<std::string> missing, notices;
  try {
    missing = co_await kubernetes_api::missing_permissions(driver_client, wanted);
  } catch (const ApiError& error) {
    if (error.status() != 403) throw;
    notices.push_back("the permissions of the service account '" + account +
                      "' are not known, because you may not impersonate it");
  }
  if (!missing.empty())
    throw core::EnvironmentError(
        "the service account '" + account + "' of the namespace " + access.name_space +
            " may not drive a run: these permissions are missing: " + core::joined(missing, ", "),
        {rbac_advice(access.name_space, account)});
  co_return notices;
}

async::Task<json> owned_by_driver(Client& client, std::string name) {
  const auto job = co_await job_called(client, name);
  json owners;
  if (job.is_null()) co_return owners;
  json owner{{"apiVersion", "batch/v1"},
             {"kind", "Job"},
             {"name", name},
             {"uid", text_at(job, "/metadata/uid")}};
  owners.push_back(std::move(owner));
  co_return owners;
}

async::Task<> try_out_driver(Client& client, DriverJob driver) {
  if (driver.image.reference.empty()) driver.image = {"pipe:driver", false, {"pipe"}, "amd64"};
  const auto refusal = co_await try_out_pod(client, driver_manifest(driver));
  if (!refusal) co_return;
  auto hints = refusal->hints;
  hints.emplace_back("`driver_job_patch` of a profile changes its Job");
  throw core::EnvironmentError(
      "the cluster does not take the pod of the run's driver: " + refusal->reason,
      std::move(hints));
}

async::Task<> start_driver(Client& client, DriverJob driver) {
  const auto name = driver_name(driver.run_id);
  co_await make(client, "batch/v1", "jobs", driver_manifest(driver));
  std::exception_ptr failed;
  try {
    const auto owners = co_await owned_by_driver(client, name);
    auto secret = driver_secret(driver);
    if (secret) {
      // The Job owns the Secret, so that the cluster removes it even if this process dies.
      (*secret)["metadata"]["ownerReferences"] = owners;
      co_await make(client, "", "secrets", std::move(*secret));
    }
    json lease{{"apiVersion", "coordination.k8s.io/v1"},
               {"kind", "Lease"},
               {"metadata", {{"name", name}, {"ownerReferences", owners}}}};
    // Does nothing if the driver has created the Lease first.
    co_await make(client, "coordination.k8s.io/v1", "leases", std::move(lease));
  } catch (const core::EnvironmentError&) {
    failed = std::current_exception();
  }
  if (!failed) co_return;
  try {
    co_await delete_job(client, name);
  } catch (const core::EnvironmentError& error) {
    core::log::warn(error.what());
  }
  std::rethrow_exception(failed);
}

async::Task<bool> driver_continues(Client& client, std::string name) {
  kubernetes_api::ApiCall question("read the Job " + name, "GET",
                                   client.path("batch/v1", "jobs", name));
  question.timeout = std::chrono::seconds(5);
  question.max_tries = 1;
  json job;
  try {
    job = co_await client.call(std::move(question));
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
  }
  co_return !job.is_null() && !has_ended(job);
}

async::Task<DriverStatus> driver_status_of(Client& client, std::string name) {
  DriverStatus status;
  const auto job = co_await job_called(client, name);
  status.goes_on = !job.is_null() && !has_ended(job);
  const auto holder = co_await kubernetes_api::holder_of(client, name);
  status.holder = holder.name;
  if (!status.holder.empty()) co_return status;
  const auto answer = co_await pods_of_job(client, name);
  const auto& pods = kubernetes_api::list_at(answer, "/items");
  if (pods.empty() && !job.is_null()) {
    const auto refused = co_await last_refusal(client, name);
    // The time limit does not matter: only failures whose limit is 0 are read.
    const auto about = pod_state_of_job(job, std::chrono::minutes(10), refused);
    status.waits_for = about.waits_for;
    status.will_not_start = about.failure && about.limit.count() == 0;
  }
  for (const auto& pod : pods) {
    if (const auto code = exit_code_of(pod); code && *code != 0)
      status.failure =
          text_at(kubernetes_api::named_at(pod, "/status/containerStatuses", step_container),
                  "/state/terminated/message");
    const auto about = pod_state_of(pod);
    if (about.phase != PodState::Phase::waiting) continue;
    status.waits_for = about.waits_for;
    status.will_not_start = about.failure && about.limit.count() == 0;
  }
  co_return status;
}

async::Task<bool> driver_has_pod(Client& client, std::string name) {
  const auto pods = co_await pods_of_job(client, std::move(name));
  co_return std::ranges::any_of(kubernetes_api::list_at(pods, "/items"), [](const json& pod) {
    const auto phase = text_at(pod, "/status/phase");
    return phase != "Succeeded" && phase != "Failed";
  });
}

async::Task<> remove_driver(Client& client, std::string name) {
  return delete_job(client, std::move(name));
}

}  // namespace pipeline::orchestrators::kubernetes
