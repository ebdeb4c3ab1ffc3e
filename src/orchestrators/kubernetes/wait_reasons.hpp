/// @file
/// Asks the cluster for reasons of a wait that the watches of JobInformer do not report.
#pragma once

#include <chrono>
#include <string>

#include "kubernetes_api/client.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/kueue.hpp"
#include "orchestrators/kubernetes/node_fit.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Asks why a Job waits in a queue, why its pod is not created, or why its pod has no node. The
/// more Jobs a run has, the less often it asks for each of them.
class WaitReasons {
 public:
  using Clock = std::chrono::steady_clock;

  WaitReasons(kubernetes_api::Client& client, JobInformer& informer, const AttemptSpec& attempt,
              PodOfJob pod)
      : client_(client),
        informer_(informer),
        attempt_(attempt),
        pod_(std::move(pod)),
        kueue_(client) {}

  /// Asks, if it is time, and updates the members below.
  /// @param in_stage how long the Job has been in the present stage of its wait
  async::Task<> look(const JobInformer::Entry& entry, Clock::duration in_stage,
                     Clock::time_point now);
  /// The nodes' room for a pod without a node.
  Room room = Room::not_looked;
  std::string refused, queued;  ///< See JobView.

  /// Returns why Kueue has ended the Job's pods.
  async::Task<Eviction> eviction(const JobInformer::Entry& entry);

 private:
  async::Task<> look_at_nodes(const JobInformer::Entry& entry);
  async::Task<> look_at_job(const JobInformer::Entry& entry);

  kubernetes_api::Client& client_;
  JobInformer& informer_;
  const AttemptSpec& attempt_;
  const PodOfJob pod_;
  Kueue kueue_;
  Clock::time_point next_look_;
  bool may_ask_again_ = true;
};

}  // namespace pipeline::orchestrators::kubernetes
