/// @file
/// Reads a YAML text into a tree of values with source positions. The accepted language is a safe
/// subset of YAML 1.2's core: one document, unique text keys, no tags but `!!str`, no merge keys,
/// and limits on size, nesting and alias expansion.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::yaml {

struct YamlLimits {
  std::size_t bytes = 16u << 20;         ///< Maximum size of the text.
  std::size_t depth = 100;               ///< Maximum nesting of lists and maps.
  std::size_t copied_values = 100'000;   ///< Maximum number of values copied by aliases.
  std::size_t copied_bytes = 16u << 20;  ///< Maximum size of their texts.
};

/// Returns the document, or nothing if the text is not YAML at all. Appends errors to
/// `diagnostics`; a returned tree can have errors too.
std::optional<core::Value> parse_yaml(std::string_view text, settings::Diagnostics& diagnostics,
                                      const YamlLimits& limits = {});

}  // namespace pipeline::yaml
