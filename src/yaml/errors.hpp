/// @file
/// Words for texts that are no YAML at all: yaml-cpp's own say what its scanner met, not what the
/// author should do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostic.hpp"

namespace pipeline::yaml {

/// Bytes that no YAML text holds: invalid UTF-8, and control characters, at one of which (0x04)
/// yaml-cpp silently takes the text for ended.
std::optional<core::Diagnostic> find_unreadable_bytes(std::string_view text);

/// @param message what yaml-cpp said, at this place (from 1)
/// @param last_node byte offset of the last node that was read: what was left open stands behind it
core::Diagnostic explain_yaml_error(const std::string& message, unsigned line, unsigned column,
                                    std::string_view text, std::size_t last_node);

}  // namespace pipeline::yaml
