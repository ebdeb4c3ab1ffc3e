/// @file
/// The keys of a pipeline file, and advice for other keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/decode.hpp"

namespace pipeline::spec {

/// The permitted keys of a pipeline file, and of a step.
extern const std::vector<std::string> pipeline_keys, step_keys;

/// Returns one of `words`; reports anything else, with a suggestion.
std::optional<std::string> read_word(const char* key, const core::Value& value,
                                     const std::vector<std::string>& words,
                                     settings::Diagnostics& diagnostics);

/// Same as report_unknown_keys(), with advice for names that ZenML, GitLab and other tools use for
/// settings with another name here.
void report_keys(const core::Value& map, const std::vector<std::string>& allowed,
                 const std::string& place, settings::Diagnostics& diagnostics);

/// Returns true if the map has a key that resembles `key`, which it lacks. The error about the
/// unknown key is then sufficient.
bool has_misspelt(const core::Value& map, const std::string& key);

}  // namespace pipeline::spec
