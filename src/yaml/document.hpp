/// @file
/// A YAML text to a tree of values with places. YAML 1.2's core, less what only serves to confuse
/// or to attack: one document, keys are texts and unique, no tags but `!!str`, no merge keys, and
/// bounds on size, nesting and what aliases expand to.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::yaml {

struct YamlLimits {
  std::size_t bytes = 16u << 20;        ///< Of the text.
  std::size_t depth = 100;              ///< Lists and maps within each other.
  std::size_t copied_values = 100'000;  ///< Made by anchors and aliases.
};

/// The document, or nothing if it cannot be read as YAML at all. Appends what is wrong with it; a
/// tree may come with diagnostics.
std::optional<core::Value> parse_yaml(std::string_view text, settings::Diagnostics& diagnostics,
                                      const YamlLimits& limits = {});

}  // namespace pipeline::yaml
