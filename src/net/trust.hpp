/// @file
/// Recognises exchanges that failed because of certificates, which no retry repairs. Pure.
#pragma once

#include "net/http.hpp"

namespace pipeline::net {

/// Returns true if the certificate of the server or of the client, or the server's name, is
/// invalid. A connection that was merely closed during its handshake does not count.
bool is_about_trust(const TransportError& error);

}  // namespace pipeline::net
