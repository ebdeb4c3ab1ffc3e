/// @file
/// Reads the sources of a step's variables: parameters, environment and secrets.
#pragma once

#include <filesystem>

#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Reads `parameters`, and reports errors.
/// @param pipeline the pipeline's defaults, for a step; null if `value` is the pipeline's
void read_parameters(const core::Value& value, Defaults& defaults, const Defaults* pipeline,
                     settings::Diagnostics& diagnostics);
void read_environment(const core::Value& value, Defaults& defaults,
                      settings::Diagnostics& diagnostics);
/// @param root the folder that relative paths of secrets' files are resolved against
void read_secrets(const core::Value& value, Defaults& defaults, const std::filesystem::path& root,
                  settings::Diagnostics& diagnostics);
/// Reports names of a step that become the same variable.
void check_variables(const ReadStep& step, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
