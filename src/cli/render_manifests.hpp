/// @file
/// Prints the Kubernetes Jobs of steps.
#pragma once

#include <pipeline/spec.hpp>

#include "cli/context.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

/// Prints the Job of each selected step, as one list that kubectl reads. Values that only a run has
/// are placeholders in capitals.
core::ExitCode render_manifests(Context& context, const PipelineSpec& pipeline);

}  // namespace pipeline::cli
