#include "orchestrators/kubernetes/wait_reasons.hpp"

#include <algorithm>

#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/pod_events.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using namespace std::chrono_literals;

// How long a pod has to wait before the first look, and the time between two looks.
constexpr auto first_look = 1s, look_pause = 5s;

bool is_suspended(const JobInformer::Entry& entry) {
  return kubernetes_api::at(entry.job, "/spec/suspend") == true;
}

}  // namespace

async::Task<> WaitReasons::look(const JobInformer::Entry& entry, Clock::duration in_stage,
                                Clock::time_point now) {
  // Several nodes may share a Job; the WaitReasons of node 0 alone asks about the Job.
  const bool is_about_job =
      entry.pod.is_null() && pod_.index.value_or(0) == 0 &&
      (!is_suspended(entry) || attempt_.step.settings->kubernetes.queue_name.has_value());
  const bool is_about_nodes = !entry.pod.is_null() && pod_state_of(entry.pod).stage == "node";
  if ((!is_about_job && !is_about_nodes) || in_stage < first_look || now < next_look_) co_return;
  next_look_ = now + std::max<Clock::duration>(look_pause, informer_.size() * 50ms);
  if (is_about_nodes) co_return co_await look_at_nodes(entry);
  co_await look_at_job(entry);
}

async::Task<> WaitReasons::look_at_nodes(const JobInformer::Entry& entry) {
  const auto& settings = attempt_.step.settings->kubernetes;
  const auto nodes = co_await informer_.nodes();
  // An earlier attempt may have had a node that fitted, so the cluster may have one again.
  const bool may_have_one = settings.autoscaling.value_or(false) || attempt_.number > 1;
  room = room_on(nodes, kubernetes_api::at(entry.pod, "/spec"), may_have_one);
}

async::Task<> WaitReasons::look_at_job(const JobInformer::Entry& entry) {
  if (is_suspended(entry)) {
    const auto workload =
        co_await kueue_.workload_of(kubernetes_api::text_at(entry.job, "/metadata/uid"));
    queued = why_queued(workload);
    co_return;
  }
  // The cluster forgets events after an hour, and reports few of them.
  if (auto message = co_await last_refusal(client_, pod_.job); !message.empty())
    refused = std::move(message);
  if (may_ask_again_ && pod_state_of_job(entry.job, {}, refused).in_quota_queue)
    may_ask_again_ = co_await ask_for_pod(client_, pod_.job);
}

async::Task<Eviction> WaitReasons::eviction(const JobInformer::Entry& entry) {
  const auto workload =
      co_await kueue_.workload_of(kubernetes_api::text_at(entry.job, "/metadata/uid"));
  co_return eviction_from_queue(workload);
}

}  // namespace pipeline::orchestrators::kubernetes
