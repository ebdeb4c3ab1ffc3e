/// @file
/// Exports a run as OpenLineage events.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "exports/run_facts.hpp"

namespace pipeline::exports {

/// Returns the events (OpenLineage 2-0-2) of the run and of each step that the run executed, in the
/// order of time. The run and each step have an event for their start, and one for their end unless
/// they still run. OpenLineage calls both a run; that of a step names the pipeline's as its parent.
std::vector<nlohmann::json> openlineage_events(const RunFacts& facts);

}  // namespace pipeline::exports
