/// @file
/// Decodes settings from a document, merges and checks them. The tables in fields.hpp list the keys
/// of each struct; decoding, merging, JSON and the JSON Schema follow from them.
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

/// Decodes a `settings:` map. Appends errors to `diagnostics`: unknown keys with a suggestion,
/// wrong types, invalid quantities, control characters.
Settings decode_settings(const core::Value& value, Diagnostics& diagnostics);
RetrySettings decode_retry(const core::Value& value, Diagnostics& diagnostics);

/// Merges the step's values over the pipeline's, key by key: a step's scalars and lists replace the
/// pipeline's, maps are merged. A step's value also drops the pipeline's values that contradict it.
Settings merge(const Settings& pipeline, const Settings& step);
RetrySettings merge(const RetrySettings& pipeline, const RetrySettings& step);

/// Returns canonical JSON, from which digests are computed: only the keys that were given, under
/// their names in the table.
nlohmann::json to_json(const Settings& settings);
nlohmann::json to_json(const DockerSettings& settings);
nlohmann::json to_json(const ResourceSettings& settings);
nlohmann::json to_json(const RetrySettings& settings);

/// Returns the JSON Schema (draft 2020-12) of `settings` and of `retry`; every key has its
/// description.
nlohmann::json settings_schema();
nlohmann::json retry_schema();
/// Returns the JSON Schema of a size or a duration: numbers, and texts that parse_bytes() and
/// parse_duration() accept.
nlohmann::json bytes_schema();
nlohmann::json duration_schema();

}  // namespace pipeline::settings
