/// @file
/// Bytes as text, by RFC 4648.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::core {

/// The bytes; padding may be missing, `-` and `_` stand for `+` and `/`. Nothing for other text.
std::optional<std::string> decode_base64(std::string_view text);

/// With padding.
std::string encode_base64(std::string_view bytes);

}  // namespace pipeline::core
