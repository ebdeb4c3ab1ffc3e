/// @file
/// Lists the steps that took an artifact, and what was made of their outputs in turn.
#pragma once

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// Returns a list of the steps that took the artifact: each with its run, its inputs that were the
/// artifact, and its outputs, which have the same list as `used`. An output that occurs again is
/// `shown_before`.
nlohmann::json uses_of(store::RunStore& store, const core::Digest& artifact);

}  // namespace pipeline::report
