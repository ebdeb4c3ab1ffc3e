/// @file
/// What the steps of a pipeline say of each other: inputs, outputs, order, and the names in their
/// commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/step_reader.hpp"

namespace pipeline::spec {

/// Inputs are outputs of steps that there are, `after` names steps, nothing waits for itself in the
/// end.
void check_references(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

/// Reads each step's command, its names checked against the step's inputs, outputs, parameters and
/// variables.
void read_commands(std::vector<ReadStep>& steps, std::string_view source,
                   settings::Diagnostics& diagnostics);

/// Leaves each step those parameters that belong to it: its own, those that it takes from the
/// pipeline by name, and those that its command names as `${params.X}` or as the variable
/// PIPE_PARAM_X.
void keep_named_parameters(std::vector<ReadStep>& steps);

/// Those of `parameters` whose variable occurs in the text.
std::vector<std::string> parameters_read_by(std::string_view text,
                                            const std::vector<std::string>& parameters);

}  // namespace pipeline::spec
