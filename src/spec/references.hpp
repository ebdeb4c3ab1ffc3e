/// @file
/// Checks the references between the steps of a pipeline: inputs, outputs, order, and the names in
/// their commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/step_reader.hpp"

namespace pipeline::spec {

/// Reports inputs and `after` entries that name no step or output, and dependency cycles.
void check_references(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

/// Parses each step's command and checks its names against the step's own.
void read_commands(std::vector<ReadStep>& steps, const std::vector<std::string_view>& sources,
                   settings::Diagnostics& diagnostics);

/// Reduces each step's parameters to those that belong to it: its own, those that it takes from the
/// pipeline by name, and those that its command uses as `${params.X}` or as the variable
/// PIPE_PARAM_X.
void keep_named_parameters(std::vector<ReadStep>& steps);

/// Returns those of `parameters` whose variable occurs in the text.
std::vector<std::string> parameters_read_by(std::string_view text,
                                            const std::vector<std::string>& parameters);

}  // namespace pipeline::spec
