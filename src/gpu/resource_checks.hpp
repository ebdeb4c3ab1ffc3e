/// @file
/// What a document says about the machine that a step needs, against what is known of instance
/// types and of ECS's language: errors with their place.
#pragma once

#include "settings/settings.hpp"

namespace pipeline::gpu {

/// Syntax of each of `placement_constraints`. @param settings the value of a `settings:`
void check_placement(const core::Value& settings, settings::Diagnostics& diagnostics);

/// Whether the step's `instance_type` has what the step asks for. @param resources the pipeline's
/// merged in @param step the step's own map
void check_instance_type(const ResourceSettings& resources, const core::Value& step,
                         core::Span step_name, settings::Diagnostics& diagnostics);

}  // namespace pipeline::gpu
