/// @file
/// Reads what Kueue reports about a Job in one of its queues.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Adds the annotation to the pods' metadata by which Kueue chooses nodes that are near one
/// another. Throws InputError for a step without a queue.
void add_topology(nlohmann::json& metadata, const StepSpec& step);

/// Returns why Kueue does not let a Workload run; empty if it does, or gives no reason.
std::string why_queued(const nlohmann::json& workload);
/// The reason why Kueue has ended a Workload that ran.
struct Eviction {
  std::string why = {};        ///< Empty: Kueue has not ended it, or gives no reason.
  bool is_preemption = false;  ///< Another Workload has got its resources.
};
Eviction eviction_from_queue(const nlohmann::json& workload);

/// Reads the Workloads of Jobs, if the cluster has Kueue and this user may read them.
class Kueue {
 public:
  explicit Kueue(kubernetes_api::Client& client) : client_(client) {}
  /// Returns the Workload of a Job; null: there is none, or it may not be read.
  async::Task<nlohmann::json> workload_of(std::string job_uid);

 private:
  kubernetes_api::Client& client_;
  std::string group_version_;
  bool may_read_ = true;
};

}  // namespace pipeline::orchestrators::kubernetes
