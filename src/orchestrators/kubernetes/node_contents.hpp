/// @file
/// What the caches of the nodes (stager/node_cache.hpp) hold, as far as the pods of this run show
/// it. No node is asked, and a cache may have removed an object since: good for a preference only.
#pragma once

#include <map>
#include <set>
#include <string>

#include "orchestrators/kubernetes/affinity.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Small artifacts are left out: their download costs less than a crowded node.
class NodeContents {
 public:
  /// Notes that a pod on this node has downloaded the attempt's inputs. @param node may be empty
  void note(const AttemptSpec& attempt, const std::string& node);
  /// Returns the nodes that hold a tenth or more of the bytes of the attempt's inputs, weighted by
  /// their share; nothing if so many hold some that any node is as good.
  PreferredNodes holders(const AttemptSpec& attempt) const;

 private:
  std::map<std::string, std::set<std::string>> nodes_;  ///< Names, by an artifact's digest.
};

}  // namespace pipeline::orchestrators::kubernetes
