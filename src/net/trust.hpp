/// @file
/// Certificates: the authorities that this machine trusts, and the exchanges that failed because of
/// certificates, which no retry repairs.
#pragma once

#include <string>

#include "net/http.hpp"

namespace pipeline::net {

/// Returns true if the certificate of the server or of the client, or the server's name, is
/// invalid. A connection that was merely closed during its handshake does not count.
bool is_about_trust(const TransportError& error);

/// Returns the path of this machine's CA bundle: the file that SSL_CERT_FILE names, else the first
/// that exists of the known distributions' paths; empty if there is none. A libcurl that was built
/// on another distribution does not know this path.
std::string authorities_file();

}  // namespace pipeline::net
