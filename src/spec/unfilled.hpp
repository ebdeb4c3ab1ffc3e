/// @file
/// Placeholders in texts that are taken as they stand.
#pragma once

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// Reports `${...}` in parameters, environment, secrets, versions and values of matrices, where
/// nothing fills it, and replaces `$${` by `${` there. @param file the document of a pipeline file
void check_unfilled(core::Value& file, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
