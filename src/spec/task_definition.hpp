/// @file
/// Amazon ECS task definitions, read as pipelines: each container becomes a step
/// (docs/coming-from-ecs.md).
#pragma once

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// True for a document with `containerDefinitions`, at the top or, as `aws ecs
/// describe-task-definition` prints it, under `taskDefinition`.
bool is_task_definition(const core::Value& document);

/// The pipeline file that it stands for; every value keeps the place of what it was made from, so
/// that what is wrong with it is shown there.
/// @param diagnostics receives what ECS would not take either
/// @param notices     receives what ECS does and pipe does not
core::Value pipeline_of(const core::Value& document, settings::Diagnostics& diagnostics,
                        settings::Diagnostics& notices);

}  // namespace pipeline::spec
