/// @file
/// UTF-8 (RFC 3629), character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipeline::core {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  ///< Bytes that it takes.
  bool valid = false;      ///< If not, `value` is one byte.
};

/// The first code point of a text that is not empty. Overlong forms, surrogates and cut sequences
/// are invalid.
CodePoint decode_utf8(std::string_view text);

}  // namespace pipeline::core
