#include "core/digest.hpp"

#include <cerrno>
#include <memory>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "core/error.hpp"
#include "core/reading_stop.hpp"
#include "core/regular_file.hpp"

namespace pipeline::core {

namespace {

constexpr std::size_t read_size = 1 << 20;

EVP_MD_CTX* context(void* pointer) { return static_cast<EVP_MD_CTX*>(pointer); }

/// Fetched once, because OpenSSL 3 otherwise looks the algorithm up at every use. OpenSSL's
/// configuration file is not needed, and reading it would cost a millisecond.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* algorithm = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    return EVP_MD_fetch(nullptr, "SHA256", nullptr);
  }();
  return algorithm;
}

int nibble(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string hex_of(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string Digest::hex() const {
  return hex_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Digest Digest::from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 64) throw std::invalid_argument("a SHA-256 digest has 64 hexadecimal digits");
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      throw std::invalid_argument("a SHA-256 digest has hexadecimal digits only");
    digest.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

Hasher::Hasher() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex2(context(context_), sha256_algorithm(), nullptr) != 1)
    throw std::bad_alloc();
}

Hasher::~Hasher() { EVP_MD_CTX_free(context(context_)); }

Hasher& Hasher::update(std::string_view data) {
  EVP_DigestUpdate(context(context_), data.data(), data.size());
  return *this;
}

Hasher& Hasher::field(std::string_view data) {
  char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<char>(static_cast<std::uint64_t>(data.size()) >> (8 * i));
  return update({length, sizeof length}).update(data);
}

Digest Hasher::finish() {
  Digest digest;
  EVP_DigestFinal_ex(context(context_), digest.bytes.data(), nullptr);
  EVP_DigestInit_ex2(context(context_), nullptr, nullptr);
  return digest;
}

Digest sha256(std::string_view data) { return Hasher().update(data).finish(); }

Digest sha256_file(const std::filesystem::path& file) {
  const auto opened = open_regular_file(file);
  const int descriptor = opened.get();
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  Hasher hasher;
  // Most files are small and need no buffer of a megabyte.
  char small[16384];
  std::unique_ptr<char[]> large;
  while (true) {
    check_reading();
    char* buffer = large ? large.get() : small;
    const ssize_t count = ::read(descriptor, buffer, large ? read_size : sizeof small);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error("cannot read " + file.string(), errno);
    if (count == 0) return hasher.finish();
    hasher.update({buffer, static_cast<std::size_t>(count)});
    if (!large && count == sizeof small) large = std::make_unique_for_overwrite<char[]>(read_size);
  }
}

}  // namespace pipeline::core
