/// @file
/// Error messages for texts that are not YAML. yaml-cpp's own messages describe its scanner's
/// state, not what the author should change.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostic.hpp"

namespace pipeline::yaml {

/// Finds bytes that no YAML text may hold: invalid UTF-8 and control characters. yaml-cpp silently
/// treats one of these, 0x04, as the end of the text.
std::optional<core::Diagnostic> find_unreadable_bytes(std::string_view text);

/// Makes a diagnostic of yaml-cpp's error.
/// @param message yaml-cpp's own message
/// @param line, column position of the error, from 1
/// @param last_node byte offset of the last node read; an unclosed bracket or quote is after it
core::Diagnostic explain_yaml_error(const std::string& message, unsigned line, unsigned column,
                                    std::string_view text, std::size_t last_node);

}  // namespace pipeline::yaml
