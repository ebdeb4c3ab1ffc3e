/// @file
/// Lines of a step's log that programs can read: `@pipe {"level": "info", "message": "epoch done",
/// "fields": {"loss": 0.25}}`, `@pipe {"progress": 0.5}`, `@pipe {"metric": "loss", "value":
/// 0.25}`. Steps in any language can print them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::core {

inline constexpr std::string_view structured_prefix = "@pipe {";

/// Returns the object; nothing for any other line.
std::optional<nlohmann::json> parse_structured(std::string_view line);
/// Formats the line for people: `info: epoch done loss=0.25`, `50 %`, `loss = 0.25`; any other line
/// stays as it is.
std::string shown_line(std::string_view line);

}  // namespace pipeline::core
