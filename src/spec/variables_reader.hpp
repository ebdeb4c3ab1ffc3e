/// @file
/// Reads the sources of a step's variables: parameters, environment and secrets.
#pragma once

#include <filesystem>

#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Reads `parameters`.
/// @param pipeline_defaults for a step; null if `value` is the pipeline's
void read_parameters(const core::Value& value, Defaults& into, const Defaults* pipeline_defaults,
                     settings::Diagnostics& diagnostics);
/// Reads `environment`: a map of names to values, or a list of names.
void read_environment(const core::Value& value, Defaults& into, settings::Diagnostics& diagnostics);
/// Reads `secrets`. @param root the folder that relative paths of secrets' files are resolved
/// against
void read_secrets(const core::Value& value, Defaults& into, const std::filesystem::path& root,
                  settings::Diagnostics& diagnostics);
/// Reports names of a step's inputs, outputs or parameters that become the same variable, and names
/// that are both under `environment` and under `secrets`.
void check_variables(const ReadStep& step, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
