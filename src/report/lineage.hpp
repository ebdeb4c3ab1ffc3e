/// @file
/// The lineage of an artifact, back to the sources.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// Returns the run, step, attempt, code, command and parameters that made the artifact, and the
/// same for its `inputs`; a gathered input is a list. Returns null if no step made the artifact. An
/// artifact that occurs again is `shown_before`.
/// @param step,run the step that is meant, if several made an equal artifact; empty: the newest
nlohmann::json lineage_of(store::RunStore& store, const core::Digest& artifact,
                          const std::string& step = {}, const std::string& run = {});

}  // namespace pipeline::report
