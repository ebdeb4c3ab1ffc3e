/// @file
/// The knowledge that the pods of a step with nodes have of one another.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cancel.hpp"
#include "kubernetes_api/client.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators::kubernetes {

/// The pods of an attempt with nodes. Pods that have nodes wait for those that have none, and so
/// hold what others may need: not for long.
class GangPods {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// @param patience how long the first pod with a node waits for the last
  GangPods(unsigned nodes, std::chrono::seconds patience)
      : addresses_(nodes), have_nodes_(nodes), patience_(patience) {}

  /// Takes what is known of a node's pod. @param pod null: there is none yet @param is_gone it was
  /// there, and is not any more
  void see(unsigned node, const nlohmann::json& pod, TimePoint now, bool is_gone = false);
  /// Returns whether this pod has no node, and another one has waited for it for long enough.
  bool must_give_back(unsigned node, TimePoint now) const;
  /// Returns the failure of the pod that gives back.
  Failure failure_of(const nlohmann::json& pod) const;

  /// Returns the pod of a GangJob as its own end has left it; nothing: it was ended because another
  /// one had failed or was deleted before, whether by the Job's controller or the driver.
  std::optional<nlohmann::json> own_end(unsigned node, const nlohmann::json& pod) const;

  /// Returns the addresses of all pods with commas; empty while one is not known.
  std::string addresses() const;

 private:
  std::vector<std::string> addresses_;
  std::vector<bool> have_nodes_;
  std::optional<TimePoint> waits_since_;
  std::optional<unsigned> first_to_go_;  ///< The node whose pod has failed or was deleted first.
  std::chrono::seconds patience_;
};

/// Port of rank 0 in its pod.
inline constexpr unsigned node_port = 29500;
/// Returns how long a pod of this step that has a node waits for the others.
std::chrono::seconds patience_with(const StepSpec& step);

/// Tells the agent of a pod the addresses, once all are known, until `is_told` returns true or
/// `stop` is stopped. Needs the permission to attach to pods. Throws ApiError if the cluster
/// refuses it.
async::Task<> tell_addresses(kubernetes_api::Client& client, const GangPods& gang, std::string pod,
                             std::function<bool()> is_told, core::CancelSource& stop);

}  // namespace pipeline::orchestrators::kubernetes
