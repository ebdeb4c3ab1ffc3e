/// @file
/// Placeholders in texts that are taken as they stand.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// Replaces each `$${` of the text by `${`, up to the first `${` without a second `$` before it.
/// Returns the offset of that `${`; nothing if there is none.
std::optional<std::size_t> unescape_until_placeholder(std::string& text);

/// Reports `${...}` in parameters, environment, secrets, versions and values of matrices, where
/// nothing fills it, and replaces `$${` by `${` there. @param file the document of a pipeline file
void check_unfilled(core::Value& file, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
