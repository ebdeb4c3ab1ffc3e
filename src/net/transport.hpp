/// @file
/// The options of a curl handle that say how a server is reached: TCP or TLS, certificates, a
/// proxy.
#pragma once

#include "net/curl.hpp"
#include "net/http.hpp"

namespace pipeline::net {

/// Throws TransportError if curl refuses the option.
template <class Value>
void set_option(CURL* easy, const Request& request, CURLoption option, Value value) {
  if (const auto code = curl::easy_setopt(easy, option, value); code != CURLE_OK)
    throw TransportError(code,
                         request.method + " " + request.url + ": " + curl::easy_strerror(code));
}

/// Sets the options of the handle that say how the request's server is reached.
/// @param request must outlive the use of the handle
/// @return a list that has to be freed after the handle; may be null
curl_slist* set_transport(CURL* easy, Request& request);

}  // namespace pipeline::net
