/// @file
/// Messages for debugging this program, to stderr, from the level in the variable PIPE_LOG (debug,
/// info, warn, off; default: warn). Information for users goes through events instead.
#pragma once

#include <string_view>

namespace pipeline::core::log {

/// Returns true if debug messages are shown. Check it before composing a costly message.
bool debug_enabled();
void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);

}  // namespace pipeline::core::log
