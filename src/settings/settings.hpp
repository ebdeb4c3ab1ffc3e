/// @file
/// Settings from a document, merged and checked. One table per struct (fields.hpp) names each key
/// with its type and description; decoding, merging, the JSON Schema and JSON output all read that
/// table.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/settings.hpp>

#include "core/diagnostic.hpp"
#include "core/value.hpp"

namespace pipeline::settings {

/// Parent image of steps that name none.
inline constexpr std::string_view default_parent_image = "python:3.11-slim-bookworm";

using Diagnostics = std::vector<core::Diagnostic>;

/// Decodes a `settings:` map; appends to `diagnostics` what is wrong with it (unknown keys with a
/// suggestion, types, quantities, control characters).
Settings decode_settings(const core::Value& value, Diagnostics& diagnostics);
RetrySettings decode_retry(const core::Value& value, Diagnostics& diagnostics);

/// Where steps can run: `docker`, `local`, `kubernetes`.
const std::vector<std::string>& orchestrator_names();

/// The step's values over the pipeline's, key by key: scalars and lists of the step replace, maps
/// are merged.
Settings merge(const Settings& pipeline, const Settings& step);
RetrySettings merge(const RetrySettings& pipeline, const RetrySettings& step);

/// Canonical JSON: only what was given, keys in the table's names. What digests are made of.
nlohmann::json to_json(const Settings& settings);
nlohmann::json to_json(const DockerSettings& settings);
nlohmann::json to_json(const ResourceSettings& settings);

/// JSON Schema (draft 2020-12) definitions for `settings` and `retry`, every key with its
/// description.
nlohmann::json settings_schema();
nlohmann::json retry_schema();
/// Of a size and of a duration: numbers, and texts that parse_bytes() and parse_duration() read.
nlohmann::json bytes_schema();
nlohmann::json duration_schema();

}  // namespace pipeline::settings
