#include "net/transport.hpp"

#include "net/trust.hpp"

namespace pipeline::net {
namespace {

void set_pem(CURL* easy, const Request& request, CURLoption file_option, const std::string& file,
             CURLoption text_option, std::string& text) {
  if (!text.empty()) {
    curl_blob blob{text.data(), text.size(), CURL_BLOB_NOCOPY};
    set_option(easy, request, text_option, &blob);
  } else if (!file.empty()) {
    set_option(easy, request, file_option, file.c_str());
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
  set_pem(easy, request, CURLOPT_CAINFO,
          needs_authorities ? authorities_file() : request.tls.ca_file, CURLOPT_CAINFO_BLOB,
          request.tls.ca);
  set_pem(easy, request, CURLOPT_SSLCERT, request.tls.cert_file, CURLOPT_SSLCERT_BLOB,
          request.tls.cert);
  set_pem(easy, request, CURLOPT_SSLKEY, request.tls.key_file, CURLOPT_SSLKEY_BLOB,
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
