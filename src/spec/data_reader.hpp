/// @file
/// Reads inputs that are data from outside of the pipeline.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <pipeline/spec.hpp>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// Returns true for what is no `STEP.OUTPUT`: a path that begins with `./`, `../`, `~/` or `/`, a
/// URL, or a map.
bool is_data(const core::Value& value);

/// Reads `./corpus`, `{path: corpus}` or `{url: https://..., sha256: ...}`; reports anything else,
/// and files that do not exist.
/// @param root the folder that relative paths are resolved against
std::optional<DataSpec> read_data(const std::string& input, const core::Value& value,
                                  const std::filesystem::path& root,
                                  settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
