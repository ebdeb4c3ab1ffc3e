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

/// Takes over the attempt's Job and its pods. A dead driver has created the Job, or this one has
/// and the response was lost. Throws ApiError with status 404 if there is no Job.
async::Task<> adopt(kubernetes_api::Client& client, const Attempt& attempt,
                    const JobOptions& options, CreatedJob& created) {
  const auto name = job_name(attempt);
  auto job = co_await client.get("read the Job " + name, client.path("batch/v1", "jobs", name));
  require_labels(client, job, job_labels(attempt, options.owner));
  created.job = std::move(job);
  const auto pods = co_await pods_of_job(client, name);
  created.pods = kubernetes_api::list_at(pods, "/items");
}

/// Takes over the attempt's Job if a dead driver has created it. Returns false if there is no Job.
async::Task<bool> adopt_if_exists(kubernetes_api::Client& client, const Attempt& attempt,
                                  const JobOptions& options, CreatedJob& created) {
  try {
    co_await adopt(client, attempt, options, created);
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
    co_return false;
  }
  co_return true;
}

/// Makes the links to the folders of node 0, and the PodGroup, to which the Job of all nodes
/// refers. If the cluster refuses the PodGroup, empties GangJob::pod_group, so that the Job refers
/// to none.
async::Task<> prepare_gang(kubernetes_api::Client& client, const Attempt& attempt,
                           const JobOptions& options) {
  link_first_node(attempt);
  auto& version = options.gang_job->pod_group;
  if (version.empty()) co_return;
  const bool has_group = co_await create_pod_group(
      client, pod_group_manifest(job_manifest(attempt, options), version));
  if (!has_group) version.clear();
}

bool has_started(const json& pod) {
  return !pod.is_null() && text_at(pod, "/status/phase") != "Pending";
}

}  // namespace

/// The Secret is created after the Job, which owns the Secret from the start. So no Secret outlives
/// its Job, even if this process is killed in between. The pod's containers cannot start before the
/// Secret exists.
async::Task<CreatedJob> create_job(kubernetes_api::Client& client, const Attempt& attempt,
                                   const JobOptions& options, PodStaging* staging,
                                   const JobInformer::Entry& known) {
  CreatedJob created;
  bool is_adopted = false;
  if (attempt.joins) {
    is_adopted = co_await adopt_if_exists(client, attempt, options, created);
    // Files that a pod of the dead driver has left would be taken for those of the new pod.
    if (!is_adopted) empty_folders(attempt);
  }
  // A container that has started has read the Secret, so the dead driver had created it.
  const bool has_secret = has_started(known.pod) || std::ranges::any_of(created.pods, has_started);
  if (is_adopted && has_secret) co_return created;
  std::optional<StagedFiles> staged;
  const auto begin = Clock::now();
  if (staging) staged = co_await staging->stage_in(attempt);
  created.staging_time = Clock::now() - begin;
  if (!is_adopted) {
    if (options.gang_job) co_await prepare_gang(client, attempt, options);
    created.job =
        co_await create_in_turn(client, client.path("batch/v1", "jobs"),
                                job_manifest(attempt, options), attempt.io, created.failure);
    if (created.failure || attempt.io.cancel.level() != core::StopLevel::none) co_return created;
    if (created.job.is_null()) co_await adopt(client, attempt, options, created);
    if (options.gang_job && !options.gang_job->pod_group.empty())
      co_await give_pod_group(client, options.gang_job->pod_group, job_name(attempt),
                              text_at(created.job, "/metadata/uid"));
  }
  auto secret = secret_manifest(attempt, options.owner, staged);
  if (!secret) co_return created;
  (*secret)["metadata"]["ownerReferences"] =
      json::array({json{{"apiVersion", "batch/v1"},
                        {"kind", "Job"},
                        {"name", job_name(attempt)},
                        {"uid", text_at(created.job, "/metadata/uid")}}});
  co_await create_in_turn(client, client.path("", "secrets"), std::move(*secret), attempt.io,
                          created.failure);
  co_return created;
}

json pod_in(const json& pods, std::optional<unsigned> index) {
  for (const auto& pod : pods)
    if (index_of(pod) == index) return pod;
  return nullptr;
}

}  // namespace pipeline::orchestrators::kubernetes
