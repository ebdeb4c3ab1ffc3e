/// @file
/// The words of Kueue about a Job in one of its queues.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Asks for nodes that are near one another, by an annotation of the pods. Throws InputError for a
/// step without a queue.
void add_topology(nlohmann::json& metadata, const StepSpec& step);

/// Returns why Kueue does not let a Workload run; empty: it does, or has not said.
std::string wait_in_queue(const nlohmann::json& workload);
/// Why Kueue has ended a Workload that ran.
struct Eviction {
  std::string why = {};        ///< Empty: it has not, or does not say.
  bool is_preemption = false;  ///< Another Workload has taken its place.
};
Eviction eviction_from_queue(const nlohmann::json& workload);

/// Reads the Workloads of Jobs, where the cluster has them and this user may.
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
