/// @file
/// The metrics of results that are reused.
#pragma once

#include <string>

#include <pipeline/spec.hpp>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// Stores the metrics in the marked outputs of a reused step with the run that reuses it, if the
/// run that made them has none: the marks may be newer, or another machine made the outputs. The
/// step must be recorded already.
void note_reused_metrics(store::RunStore& store, const store::ArtifactStore& artifacts,
                         const std::string& run, const StepSpec& step,
                         const store::CacheEntry& entry);

}  // namespace pipeline::engine
