/// @file
/// Guesses what the caches of the nodes (stager/node_cache.hpp) hold, from the inputs of this run's
/// pods. Caches remove objects without notice, so the guess serves only to prefer some nodes.
#pragma once

#include <map>
#include <set>
#include <string>

#include "orchestrators/kubernetes/affinity.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// The nodes that have downloaded each artifact. Small artifacts are left out, because downloading
/// them costs less than crowding one node.
class NodeContents {
 public:
  /// Records that a pod on this node has downloaded the attempt's inputs.
  /// @param node empty if it is not known: nothing is recorded
  void note(const AttemptSpec& attempt, const std::string& node);
  /// Returns the nodes that hold a tenth or more of the bytes of the attempt's inputs, weighted by
  /// their share; none if so many nodes hold inputs that a preference is not worth it.
  PreferredNodes holders(const AttemptSpec& attempt) const;

 private:
  std::map<std::string, std::set<std::string>> nodes_;  ///< Names, by an artifact's digest.
};

}  // namespace pipeline::orchestrators::kubernetes
