/// @file
/// Whether an exchange failed for what no second try mends. Pure.
#pragma once

#include "net/http.hpp"

namespace pipeline::net {

/// The certificate of the server or of ours, or the server's name, is not right. A connection that
/// was just cut in its handshake is no such matter.
bool is_about_trust(const TransportError& error);

}  // namespace pipeline::net
