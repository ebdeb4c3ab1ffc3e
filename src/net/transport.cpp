#include "net/transport.hpp"

#include "net/trust.hpp"

namespace pipeline::net {
namespace {

/// The two options of curl for a certificate or key: its file, and its PEM text.
struct PemOptions {
  CURLoption file, text;
};

/// Sets the text, or else the file; neither if both are empty.
void set_pem(CURL* easy, const Request& request, PemOptions options, const std::string& file,
             std::string& text) {
  if (!text.empty()) {
    curl_blob blob{text.data(), text.size(), CURL_BLOB_NOCOPY};
    set_option(easy, request, options.text, &blob);
  } else if (!file.empty()) {
    set_option(easy, request, options.file, file.c_str());
  }
}

}  // namespace

curl_slist* set_transport(CURL* easy, Request& request) {
  const auto set = [&](CURLoption option, auto value) { set_option(easy, request, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
  // A request to the engine's socket needs no authorities, whose search takes time.
  const bool needs_authorities =
      request.url.starts_with("https://") && request.tls.ca_file.empty() && request.tls.ca.empty();
  set_pem(easy, request, {CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB},
          needs_authorities ? authorities_file() : request.tls.ca_file, request.tls.ca);
  set_pem(easy, request, {CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB}, request.tls.cert_file,
          request.tls.cert);
  set_pem(easy, request, {CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB}, request.tls.key_file,
          request.tls.key);
  set(CURLOPT_SSL_VERIFYPEER, request.tls.verify ? 1L : 0L);
  set(CURLOPT_SSL_VERIFYHOST, request.tls.verify ? 2L : 0L);
  if (!request.proxy.empty()) set(CURLOPT_PROXY, request.proxy.c_str());
  // A stream can be silent for minutes; keepalive notices a dead peer meanwhile.
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 30L);
  set(CURLOPT_TCP_KEEPINTVL, 15L);
  if (request.address.empty()) return nullptr;
  auto* addresses = curl::slist_append(nullptr, ("::" + request.address).c_str());
  set(CURLOPT_CONNECT_TO, addresses);
  return addresses;
}

}  // namespace pipeline::net
