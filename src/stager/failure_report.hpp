/// @file
/// The stager's report to the driver about its failure: the termination message of its container.
#pragma once

#include <string>

namespace pipeline::stager {

/// Returns the report as JSON of at most 4096 bytes, because a cluster cuts off the rest of a
/// longer one, which then cannot be read: `{"WHAT": MESSAGE, "passes": IS_TRANSIENT, "damaged":
/// DIGEST}`.
/// @param what `not_fetched` or `not_collected`
/// @param is_transient another attempt may succeed
/// @param damaged digest of the damaged artifact; empty: there is none, and no such member
std::string failure_report(const std::string& what, std::string message, bool is_transient,
                           const std::string& damaged);

}  // namespace pipeline::stager
