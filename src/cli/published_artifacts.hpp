/// @file
/// The commands for artifacts by name: `pipe artifacts --name` and `--publish`.
#pragma once

#include <string>

#include "cli/context.hpp"
#include "core/error.hpp"
#include "store/run_store.hpp"

namespace pipeline::cli {

/// Lists, copies, promotes or demotes versions of the name that the options give: in the remote
/// store of the options' profile, or else in the state folder.
core::ExitCode published_command(Context& context);

/// Publishes an output of a run, which must be in the artifact store, and makes it current.
void publish_output(Context& context, store::RunStore& store, const std::string& name,
                    const store::StepRecord& step, const store::OutputRecord& output);

}  // namespace pipeline::cli
