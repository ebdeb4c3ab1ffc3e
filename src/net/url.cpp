#include "net/url.hpp"

#include "core/text.hpp"

namespace pipeline::net {

std::string url_encode(std::string_view text, std::string_view keep) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (core::is_alnum(c) || std::string_view("-._~").find(c) != std::string_view::npos ||
        keep.find(c) != keep.npos)
      encoded += c;
    else
      (encoded += '%').append({digits[byte >> 4], digits[byte & 15]});
  }
  return encoded;
}

}  // namespace pipeline::net
