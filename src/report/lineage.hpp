/// @file
/// What made an artifact, back to the sources.
#pragma once

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// Returns the run, step, attempt, code, command and parameters that made the artifact, and the
/// same of its `inputs`, of which a gathered one is a list. Null if no step made it. An artifact
/// that occurs again is `shown_before`.
nlohmann::json lineage_of(store::RunStore& store, const core::Digest& artifact);

}  // namespace pipeline::report
