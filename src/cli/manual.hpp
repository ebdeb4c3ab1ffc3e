/// @file
/// The manual page, pipe(1), in the macros of man(7), with the help of each command.
#pragma once

#include <functional>
#include <string>

namespace pipeline::cli {

struct CommandEntry;

/// Returns the page's source, the same bytes for the same version.
/// @param help returns the help text of a command
std::string manual_page(const std::function<std::string(const CommandEntry&)>& help);

}  // namespace pipeline::cli
