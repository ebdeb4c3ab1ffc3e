/// @file
/// The metrics of results that are reused.
#pragma once

#include <string>

#include <pipeline/spec.hpp>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// Stores the metrics in a reused step's outputs with `metrics: true` for the run that reuses the
/// step, unless the step has metrics already. A step has none if `metrics: true` was added later,
/// or if another machine made the outputs. The step must be recorded already.
void note_reused_metrics(store::RunStore& store, const store::ArtifactStore& artifacts,
                         const std::string& run, const StepSpec& step,
                         const store::CacheEntry& entry);

}  // namespace pipeline::engine
