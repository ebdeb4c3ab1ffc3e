#include "net/trust.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace pipeline::net {

bool is_about_trust(const TransportError& error) {
  constexpr int failed_handshake = 35;
  constexpr std::array codes{51, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91};
  const std::string_view words = error.what();
  // A connection that was closed during the handshake has "unexpected eof".
  if (error.curl_code() == failed_handshake)
    return words.find("SSL routines") != words.npos && words.find("unexpected eof") == words.npos;
  return std::ranges::find(codes, error.curl_code()) != codes.end();
}

std::string authorities_file() {
  const char* named = std::getenv("SSL_CERT_FILE");
  std::error_code ignored;
  for (const char* file :
       {named ? named : "", "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (std::filesystem::is_regular_file(file, ignored)) return file;
  return {};
}

}  // namespace pipeline::net
