/// @file
/// A run as OpenLineage events.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "exports/run_facts.hpp"

namespace pipeline::exports {

/// Returns events (OpenLineage 2-0-2) of the run and of each step that it executed, in the order of
/// time: a start, and the end if there is one. A step's run has the pipeline's as its parent.
std::vector<nlohmann::json> openlineage_events(const RunFacts& facts);

}  // namespace pipeline::exports
