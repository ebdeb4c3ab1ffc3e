/// @file
/// Bounds texts of servers before they become messages.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::core {

/// Returns the text, or of one that is longer than 8 KiB the beginning, without a part of a
/// character at its end, and how many bytes were left out.
std::string excerpt(std::string_view text);

}  // namespace pipeline::core
