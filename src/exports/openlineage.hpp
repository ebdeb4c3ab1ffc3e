/// @file
/// Exports a run as OpenLineage events.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "exports/run_facts.hpp"

namespace pipeline::exports {

/// Returns the events (OpenLineage 2-0-2) of the run and of each step that the run executed, in the
/// order of time. The run and each step have an event for their start, and another for their end
/// unless they still run. For OpenLineage, a step is a run as well, and the pipeline's run is its
/// parent.
std::vector<nlohmann::json> openlineage_events(const RunFacts& facts);

}  // namespace pipeline::exports
