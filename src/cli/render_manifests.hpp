/// @file
/// What steps come to on a cluster.
#pragma once

#include <pipeline/spec.hpp>

#include "cli/context.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

/// Prints the Job of each step that the options ask for, as one list that kubectl reads. What only
/// a run knows is written in capitals.
core::ExitCode render_manifests(Context& context, const PipelineSpec& pipeline);

}  // namespace pipeline::cli
