/// @file
/// Placeholders in texts that are taken as they stand.
#pragma once

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// Reports `${...}` in parameters, environment, secrets, versions and values of matrices, where
/// nothing fills it, and makes `${` of `$${` there. @param file of a pipeline
void check_unfilled(core::Value& file, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
