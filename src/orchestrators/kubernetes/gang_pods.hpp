/// @file
/// Follows the pods of a gang, that is, of all processes of an attempt of a step with nodes. A node
/// of the step has one pod, which the cluster places on one of its nodes.
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

/// The pods of an attempt with nodes. Pods that the cluster has placed wait for those that it has
/// not, and hold resources meanwhile; after `patience`, all pods are deleted, and the attempt
/// tries again (NodeAddresses::gives_back).
class GangPods {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// @param patience how long the first pod that was placed waits for the last one
  GangPods(unsigned nodes, std::chrono::seconds patience)
      : addresses_(nodes), have_nodes_(nodes), patience_(patience) {}

  /// Records the state of the pod of a node of the step.
  /// @param pod     null if it does not exist
  /// @param is_gone the pod existed, and was deleted
  void see(unsigned node, const nlohmann::json& pod, TimePoint now, bool is_gone = false);
  /// Returns true if this pod has not been placed, and the others have waited for `patience`.
  bool is_overdue(unsigned node, TimePoint now) const;
  /// Returns the failure of the pod for which is_overdue() is true.
  Failure failure_of(const nlohmann::json& pod) const;

  /// Returns the state in which a pod of a GangJob ended by itself. Returns nothing if the Job's
  /// controller or the driver ended it, because another pod had failed or was deleted before.
  std::optional<nlohmann::json> own_end(unsigned node, const nlohmann::json& pod) const;

  /// Returns the addresses of all pods, separated by commas; empty while one is not known.
  std::string addresses() const;

 private:
  std::vector<std::string> addresses_;
  std::vector<bool> have_nodes_;          ///< Whether the cluster has placed each pod.
  std::optional<TimePoint> waits_since_;  ///< When the first pod was placed, unless all are.
  std::optional<unsigned> first_to_go_;   ///< The node whose pod has failed or was deleted first.
  std::chrono::seconds patience_;
};

/// Port of rank 0 in its pod.
inline constexpr unsigned node_port = 29500;
/// Returns how long placed pods of this step wait for the others, see GangPods.
std::chrono::seconds patience_for(const StepSpec& step);

/// Sends the addresses to the standard input of a pod's agent, once all are known. Tries until
/// `is_told` returns true or `stop` is stopped. Needs the permission to attach to pods; throws
/// ApiError if the cluster refuses it.
async::Task<> tell_addresses(kubernetes_api::Client& client, const GangPods& gang, std::string pod,
                             std::function<bool()> is_told, core::CancelSource& stop);

}  // namespace pipeline::orchestrators::kubernetes
