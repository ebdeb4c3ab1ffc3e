/// @file
/// Reads the nodes of a step, whose attempts are several processes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <pipeline/spec.hpp>

#include "settings/decode.hpp"

namespace pipeline::spec {

/// Reads `2`, or `{count: 2, processes: gpus, done: first, visible: own}`.
NodesSpec read_nodes(const core::Value& value, settings::Diagnostics& diagnostics);

/// Reports nodes that contradict other keys of their step. @param written the step's `nodes`
void check_nodes(const StepSpec& step, const core::Value& written,
                 settings::Diagnostics& diagnostics);

/// Returns the document from which read_nodes() reads these nodes.
nlohmann::json nodes_document(const NodesSpec& nodes);

nlohmann::json nodes_schema();

}  // namespace pipeline::spec
