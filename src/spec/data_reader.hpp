/// @file
/// Reads inputs that are data from outside of the pipeline, and the names under which outputs are
/// published for other pipelines.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <pipeline/spec.hpp>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// Returns true for data from outside of the pipeline, false for a `STEP.OUTPUT`. Data is a text
/// with a `/` (a path or a URL), `.`, `..`, `artifact:NAME`, or a map.
bool is_data(const core::Value& value);

/// Reads `./corpus`, `{path: corpus}`, `https://...`, `s3://BUCKET/KEY`, `{url: https://...,
/// sha256: ...}`, `{url: s3://BUCKET/KEY, version: ...}`, `artifact:NAME@VERSION` or `{artifact:
/// NAME, optional: true}`; reports anything else, and files that do not exist.
/// @param root the folder that relative paths are resolved against
std::optional<DataSpec> read_data(const std::string& input, const core::Value& value,
                                  const std::filesystem::path& root,
                                  settings::Diagnostics& diagnostics);

/// Reads the names under which a step publishes outputs, `{model: production}`, keyed by output.
StringMap read_publish(const core::Value& value, const StepSpec& step,
                       settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
