#include "net/trust.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "net/curl.hpp"

namespace pipeline::net {

bool is_about_trust(const TransportError& error) {
  constexpr std::array codes{
      CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,     CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER,          CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ENGINE_INITFAILED,
      CURLE_SSL_CACERT_BADFILE,  CURLE_SSL_SHUTDOWN_FAILED,      CURLE_SSL_CRL_BADFILE,
      CURLE_SSL_ISSUER_ERROR,    CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS};
  const std::string_view words = error.what();
  // A connection that was closed during the handshake has "unexpected eof".
  if (error.curl_code() == CURLE_SSL_CONNECT_ERROR)
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
