/// @file
/// Converts a placement expression to the terms of a Kubernetes node affinity. A node matches if it
/// satisfies every requirement of at least one term (nodeSelectorTerms of
/// requiredDuringSchedulingIgnoredDuringExecution).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "gpu/placement.hpp"

namespace pipeline::gpu {

struct NodeRequirement {
  std::string key;  ///< A node label; ECS's own attributes become Kubernetes' well-known labels,
                    ///< other names stay.
  std::string op;   ///< In, NotIn, Exists, DoesNotExist, Gt or Lt.
  std::vector<std::string> values;
  bool operator==(const NodeRequirement&) const = default;
};
using NodeTerm = std::vector<NodeRequirement>;

/// Returns the disjunctive normal form, or an error message for what cannot be expressed (patterns,
/// order of texts, too many combinations).
std::variant<std::vector<NodeTerm>, std::string> node_selector_terms(const Placement& placement);

}  // namespace pipeline::gpu
