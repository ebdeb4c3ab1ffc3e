#include "net/trust.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace pipeline::net {

bool is_about_trust(const TransportError& error) {
  constexpr std::array numbers{51, 53, 54, 58, 59, 60, 66,
                               77, 80, 82, 83, 90, 91};  // Error codes of curl.
  const std::string_view words = error.what();
  if (error.curl_code() == 35)
    return words.find("SSL routines") != words.npos &&
           words.find("unexpected eof") ==
               words.npos;  // The connection was closed during the handshake.
  return std::ranges::find(numbers, error.curl_code()) != numbers.end();
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
