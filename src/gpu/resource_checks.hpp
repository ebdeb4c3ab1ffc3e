/// @file
/// Checks a document's requirements on the machine against the known instance types and ECS's
/// language; errors have source positions.
#pragma once

#include "settings/settings.hpp"

namespace pipeline::gpu {

/// Checks the syntax of each of `placement_constraints`. @param settings the value of a `settings:`
void check_placement(const core::Value& settings, settings::Diagnostics& diagnostics);

/// Checks that the step's `instance_type` satisfies the step's request.
/// @param resources the step's resources merged with the pipeline's
/// @param step the step's own map
void check_instance_type(const ResourceSettings& resources, const core::Value& step,
                         core::Span step_name, settings::Diagnostics& diagnostics);

}  // namespace pipeline::gpu
