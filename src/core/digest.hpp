/// @file
/// SHA-256 (FIPS 180-4) of bytes, files and named parts.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace pipeline::core {

/// Returns two lower-case hexadecimal digits for each byte.
std::string hex_of(std::string_view bytes);

struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  std::string hex() const;  ///< 64 lower-case digits.
  /// Throws std::invalid_argument unless the text is 64 hexadecimal digits of either case.
  static Digest from_hex(std::string_view hex);
  auto operator<=>(const Digest&) const = default;
};

/// Incremental SHA-256.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  Hasher& update(std::string_view data);
  /// Adds the length and then the bytes, so that ("ab","c") and ("a","bc") differ.
  Hasher& field(std::string_view data);
  /// Returns the digest of everything added so far, and resets the hasher.
  Digest finish();

 private:
  void* context_;  ///< An EVP_MD_CTX, so that users of this header need none of OpenSSL.
};

Digest sha256(std::string_view data);
/// Returns the digest of a file's content. Throws EnvironmentError if the file cannot be read, and
/// Stopped after stop_reading().
Digest sha256_file(const std::filesystem::path& file);

}  // namespace pipeline::core
