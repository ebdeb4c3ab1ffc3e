/// @file
/// Error messages for texts that are not YAML, with advice that yaml-cpp's own messages lack.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostic.hpp"

namespace pipeline::yaml {

/// Returns the first error in a text that must not reach yaml-cpp: UTF-16, invalid UTF-8, a control
/// character (yaml-cpp silently treats 0x04 as the end of the text), and a line that would take too
/// much memory.
std::optional<core::Diagnostic> find_unreadable(std::string_view text);

/// Converts yaml-cpp's error to a diagnostic.
/// @param message yaml-cpp's own message
/// @param line, column position of the error, from 1
/// @param last_node byte offset of the last node that could be read
core::Diagnostic explain_yaml_error(const std::string& message, unsigned line, unsigned column,
                                    std::string_view text, std::size_t last_node);

}  // namespace pipeline::yaml
