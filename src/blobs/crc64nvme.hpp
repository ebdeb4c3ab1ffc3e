/// @file
/// CRC-64/NVME, with the polynomial 0xAD93D23594C93659, reflected. S3 keeps this checksum for a
/// whole object, also if the object was uploaded in parts.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base64.hpp"

namespace pipeline::blobs {

class Crc64Nvme {
 public:
  void update(std::string_view bytes) {
    static_assert(std::endian::native == std::endian::little);
    const auto& sums = tables();
    auto state = state_;
    for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      word ^= state;
      // Written out, because the stager is compiled for size: a loop takes four times as long.
      state = sums[7][word & 0xff] ^ sums[6][(word >> 8) & 0xff] ^ sums[5][(word >> 16) & 0xff] ^
              sums[4][(word >> 24) & 0xff] ^ sums[3][(word >> 32) & 0xff] ^
              sums[2][(word >> 40) & 0xff] ^ sums[1][(word >> 48) & 0xff] ^ sums[0][word >> 56];
    }
    for (const char c : bytes)
      state = (state >> 8) ^ sums[0][(state ^ static_cast<unsigned char>(c)) & 0xff];
    state_ = state;
  }
  /// Returns the sum as S3 writes it.
  std::string base64() const {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes += static_cast<char>((~state_ >> shift) & 0xff);
    return core::encode_base64(bytes);
  }

 private:
  using Tables = std::array<std::array<std::uint64_t, 256>, 8>;
  /// Returns in table I the sum of each byte when I zero bytes follow (slicing by 8).
  static constexpr Tables make_tables() {
    constexpr std::uint64_t polynomial = 0x9A6C9329AC4BC9B5;
    Tables made{};
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::uint64_t sum = byte;
      for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) ? polynomial : 0);
      made[0][byte] = sum;
    }
    for (unsigned i = 1; i < 8; ++i)
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto sum = made[i - 1][byte];
        made[i][byte] = (sum >> 8) ^ made[0][sum & 0xff];
      }
    return made;
  }
  static const Tables& tables() {
    static constexpr Tables made = make_tables();
    return made;
  }

  std::uint64_t state_ = ~std::uint64_t{0};
};

}  // namespace pipeline::blobs
