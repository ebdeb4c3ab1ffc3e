/// @file
/// What a run was asked for, kept with it: so it can go on as it began, and what it leaves is
/// looked for where it was put.
#pragma once

#include <optional>

#include "cli/options.hpp"
#include "store/run_store.hpp"

namespace pipeline::cli {

void keep_invocation(store::RunStore& runs, const std::string& run, const Options& options);

/// The run's options; of the caller's, those stay that say how to tell about it. Nothing if they
/// were not kept.
std::optional<Options> invocation_of(store::RunStore& runs, const std::string& run, Options caller);

}  // namespace pipeline::cli
