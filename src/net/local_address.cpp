#include "net/local_address.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace pipeline::net {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

bool is_local_ipv4(const std::uint8_t* bytes) {
  const auto first = bytes[0], second = bytes[1];
  // Services of clouds that have no link-local address.
  constexpr std::array<std::uint8_t, 4> alibaba{100, 100, 100, 200}, azure{168, 63, 129, 16},
      oracle{192, 0, 0, 192};
  const auto is = [&](const auto& other) { return std::equal(other.begin(), other.end(), bytes); };
  return first == 0 || first == 127 || (first == 169 && second == 254) || first >= 224 ||
         is(alibaba) || is(azure) || is(oracle);
}

bool is_local_ipv6(const Bytes& bytes) {
  const auto starts_with = [&](std::initializer_list<std::uint8_t> prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  const bool is_link_local = bytes[0] == 0xfe && bytes[1] >= 0x80;  // Site-local ones as well.
  const bool is_unique_local = (bytes[0] & 0xfe) == 0xfc;
  if (is_link_local || is_unique_local || bytes[0] == 0xff) return true;
  if (starts_with({0x20, 0x02})) return is_local_ipv4(&bytes[2]);            // 6to4, RFC 3056.
  if (starts_with({0, 0x64, 0xff, 0x9b})) return is_local_ipv4(&bytes[12]);  // RFC 6052, 8215.
  const bool is_zero =
      std::all_of(bytes.begin(), bytes.begin() + 8, [](auto byte) { return !byte; });
  // `::`, `::1`, and IPv4 in its mapped, translated and compatible forms.
  return is_zero && is_local_ipv4(&bytes[12]);
}

}  // namespace

bool is_local_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    return is_local_ipv4(reinterpret_cast<const std::uint8_t*>(&ipv4.sin_addr));
  }
  if (address.sa_family != AF_INET6) return true;
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &address, sizeof ipv6);
  Bytes bytes{};
  std::memcpy(bytes.data(), &ipv6.sin6_addr, bytes.size());
  return is_local_ipv6(bytes);
}

}  // namespace pipeline::net
