/// @file
/// Addresses at which a machine, its link or its cloud answers: nothing that a server elsewhere may
/// lead to.
#pragma once

#include <sys/socket.h>

namespace pipeline::net {

/// Returns true for this host, loopback, link-local and unique local addresses, the services of
/// clouds, for IPv4 also within IPv6 (mapped, compatible, NAT64, 6to4), and for what is no address
/// of IP.
bool is_local_address(const sockaddr& address);

}  // namespace pipeline::net
