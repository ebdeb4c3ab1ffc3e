/// @file
/// Messages for those who look for a fault in this program: to stderr, from the level in the
/// variable PIPE_LOG (debug, info, warn, off; default: warn). What the user should know goes
/// through events instead.
#pragma once

#include <string_view>

namespace pipeline::core::log {

/// True if debug messages are shown: to be asked before a costly one is put together.
bool debug_enabled();
void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);

}  // namespace pipeline::core::log
