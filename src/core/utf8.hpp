/// @file
/// Decodes UTF-8 (RFC 3629) character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipeline::core {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  ///< Number of bytes.
  bool valid = false;      ///< If false, `value` is the first byte as it is.
};

/// Returns the first code point of a non-empty text. Overlong forms, surrogates and truncated
/// sequences are invalid.
CodePoint decode_utf8(std::string_view text);
/// Returns true if all of the text is valid.
bool is_utf8(std::string_view text);

/// Returns the text without the byte order mark that editors of Windows write.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace pipeline::core
