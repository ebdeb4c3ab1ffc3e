/// @file
/// Exports a run as OpenLineage events.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "exports/run_facts.hpp"

namespace pipeline::exports {

/// Returns the events (OpenLineage 2-0-2) of the run and of each step that the run executed, in the
/// order of time: one for the start, and one for the end unless the run has not ended. Steps that
/// have not ended have no events. For OpenLineage, a step is a run as well, and the pipeline's run
/// is its parent.
std::vector<nlohmann::json> openlineage_events(const RunFacts& facts);

}  // namespace pipeline::exports
