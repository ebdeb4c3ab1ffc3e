#include "core/utf8.hpp"

namespace pipeline::core {

CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {first, 1, false};
  char32_t value = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {first, 1, false};
    value = value << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {first, 1, false};
  return {value, length, true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto point = decode_utf8(text);
    if (!point.valid) return false;
    text.remove_prefix(point.length);
  }
  return true;
}

}  // namespace pipeline::core
