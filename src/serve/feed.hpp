/// @file
/// Events for pages that stay open.
#pragma once

#include <memory>

#include "report/report.hpp"
#include "serve/response.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::serve {

/// Sends `runs` whenever another process has committed a change.
std::unique_ptr<Feed> runs_feed(store::RunStore& store);

/// Sends `run` with all data of a run at first, then `changes`.
std::unique_ptr<Feed> run_feed(store::RunStore& store, const store::ArtifactStore& artifacts,
                               const store::RunRecord& run);

/// Returns the limits of a run's data for its page.
report::ReportLimits page_limits();

}  // namespace pipeline::serve
