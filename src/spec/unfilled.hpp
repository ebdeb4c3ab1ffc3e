/// @file
/// Reports placeholders in texts where nothing fills them.
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
/// nothing fills it, and replaces `$${` by `${` there. Does the same in the texts of `publish_to`,
/// `wait`, `cache`, `services` and some settings of `docker` that have no `${params.X}`, which
/// would be filled in. @param file the document of a pipeline file
void check_unfilled(core::Value& file, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
