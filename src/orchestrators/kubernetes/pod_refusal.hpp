/// @file
/// Reads why a cluster does not create an object: quotas, limits, policies, webhooks. Pure.
#pragma once

#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

struct Refusal {
  enum class Kind {
    temporary,  ///< The same request may succeed soon.
    full,       ///< A quota is used up by others, and could hold the object when it is empty.
    permanent   ///< Nothing changes until the object or the cluster's rules are changed.
  };
  Kind kind = Kind::temporary;
  /// A sentence about the quota, if one refuses; otherwise the cluster's own words.
  std::string reason;
  std::vector<std::string> hints;  ///< `permanent`: changes that the cluster would accept.
};

/// Reads a refusal from the message of a response, or of a Job's event `FailedCreate`.
Refusal refusal_of(const std::string& message);
/// Returns the failure of a step whose pod is refused permanently.
Failure refused(const Refusal& refusal);

}  // namespace pipeline::orchestrators::kubernetes
