/// @file
/// The provenance of an artifact, as an in-toto statement.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "exports/run_facts.hpp"

namespace pipeline::exports {

/// Returns an in-toto statement (v1) with a SLSA provenance predicate (v1).
/// @param made the run and the step that made the artifact, from facts_of_maker()
nlohmann::json artifact_provenance(const RunFacts& made, const core::Digest& artifact);

}  // namespace pipeline::exports
