/// @file
/// Base64 encoding and decoding (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::core {

/// Decodes the text; padding may be missing, and `-` and `_` are accepted for `+` and `/`. Returns
/// nothing for invalid text.
std::optional<std::string> decode_base64(std::string_view text);

/// Encodes with padding.
std::string encode_base64(std::string_view bytes);

}  // namespace pipeline::core
