#include "orchestrators/kubernetes/job_creation.hpp"

#include <algorithm>
#include <utility>

#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/gang_job.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/pod_group.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::ApiError;
using kubernetes_api::text_at;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The Job exists: a dead driver created it, or this one did and the response was lost.
async::Task<> adopt(kubernetes_api::Client& client, const Attempt& attempt, const JobOptions& place,
                    CreatedJob& made) {
  const auto name = job_name(attempt);
  auto job = co_await client.get("read the Job " + name, client.path("batch/v1", "jobs", name));
  require_labels(client, job, job_labels(attempt, place.owner));
  made.job = std::move(job);
  const auto pods = co_await pods_of_job(client, name);
  made.pods = kubernetes_api::list_at(pods, "/items");
}

/// Returns true if a dead driver has created the Job. If not, files in the attempt's folders are
/// useless to the new pod.
async::Task<bool> is_there(kubernetes_api::Client& client, const Attempt& attempt,
                           const JobOptions& place, CreatedJob& made) {
  bool there = true;
  try {
    co_await adopt(client, attempt, place, made);
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
    there = false;
  }
  if (!there) empty_folders(attempt);
  co_return there;
}

/// Makes what the Job of all nodes refers to.
async::Task<> prepare(kubernetes_api::Client& client, const Attempt& attempt,
                      const JobOptions& place) {
  link_first_node(attempt);
  auto& version = place.gang_job->pod_group;
  if (version.empty()) co_return;
  const bool is_there =
      co_await create_pod_group(client, pod_group_manifest(job_manifest(attempt, place), version));
  if (!is_there) version.clear();
}

bool has_started(const json& pod) {
  return !pod.is_null() && text_at(pod, "/status/phase") != "Pending";
}

}  // namespace

/// The Secret is created after the Job, which owns it from the start, so no Secret outlives its Job
/// even if this process is killed in between. Until it exists the pod's containers wait.
async::Task<CreatedJob> create_job(kubernetes_api::Client& client, const Attempt& attempt,
                                   const JobOptions& place, PodStaging* files,
                                   const JobInformer::Entry& known) {
  CreatedJob made;
  bool exists = attempt.joins && co_await is_there(client, attempt, place, made);
  const bool has_secret = has_started(known.pod) || std::ranges::any_of(made.pods, has_started);
  if (exists && has_secret) co_return made;
  std::optional<StagedFiles> carried;
  const auto begun = Clock::now();
  if (files) carried = co_await files->bring(attempt);
  made.brought = Clock::now() - begun;
  if (!exists) {
    if (place.gang_job) co_await prepare(client, attempt, place);
    made.job = co_await create_in_turn(client, client.path("batch/v1", "jobs"),
                                       job_manifest(attempt, place), attempt.io, made.failure);
    if (made.failure || attempt.io.cancel.level() != core::StopLevel::none) co_return made;
    if (made.job.is_null()) co_await adopt(client, attempt, place, made);
    if (place.gang_job && !place.gang_job->pod_group.empty())
      co_await give_pod_group(client, place.gang_job->pod_group, job_name(attempt),
                              text_at(made.job, "/metadata/uid"));
  }
  auto secret = secret_manifest(attempt, place.owner, carried);
  if (!secret) co_return made;
  (*secret)["metadata"]["ownerReferences"] =
      json::array({json{{"apiVersion", "batch/v1"},
                        {"kind", "Job"},
                        {"name", job_name(attempt)},
                        {"uid", text_at(made.job, "/metadata/uid")}}});
  co_await create_in_turn(client, client.path("", "secrets"), std::move(*secret), attempt.io,
                          made.failure);
  co_return made;
}

json pod_in(const json& pods, std::optional<unsigned> index) {
  for (const auto& pod : pods)
    if (index_of(pod) == index) return pod;
  return nullptr;
}

}  // namespace pipeline::orchestrators::kubernetes
