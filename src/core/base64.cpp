#include "core/base64.hpp"

#include <cstdint>

namespace pipeline::core {

namespace {
constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto value = base64_digits.find(c == '-' ? '+' : c == '_' ? '/' : c);
    if (value == base64_digits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  if (text.size() % 4 == 1) return std::nullopt;
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto piece = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < piece.size() ? static_cast<unsigned char>(piece[k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= piece.size() ? base64_digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace pipeline::core
