/// @file
/// Shortens texts that servers have sent, before they become part of a message.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::core {

/// Returns the text unchanged if it has at most 8 KiB. Otherwise returns the beginning of the text,
/// which ends with a complete UTF-8 character, and the number of bytes that were left out.
std::string excerpt(std::string_view text);

}  // namespace pipeline::core
