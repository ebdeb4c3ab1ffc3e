/// @file
/// Reads Amazon ECS task definitions as pipelines: each container becomes a step
/// (docs/coming-from-ecs.md).
#pragma once

#include <string>
#include <string_view>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::ecs_import {

/// Returns true for a document with `containerDefinitions` at the top level or under
/// `taskDefinition`, where `aws ecs describe-task-definition` prints it.
bool is_task_definition(const core::Value& document);

/// Throws InputError for a template of CloudFormation, which has task definitions with other keys,
/// and for a service or task of ECS, which only names its task definition.
void refuse_template(const core::Value& document, const std::string& file, std::string_view text);

/// Returns the equivalent pipeline document. Every value keeps the position of its source, so that
/// errors are reported there.
/// @param diagnostics receives errors that ECS would report too
/// @param notices     receives features that ECS has and pipe does not
core::Value pipeline_of(const core::Value& document, settings::Diagnostics& diagnostics,
                        settings::Diagnostics& notices);

}  // namespace pipeline::ecs_import
