/// @file
/// Addresses of this machine, its network link and its cloud's services, to which a server
/// elsewhere must not lead this program.
#pragma once

#include <sys/socket.h>

namespace pipeline::net {

/// Returns true for this host, loopback, link-local and unique local addresses, and the services of
/// clouds. IPv4 addresses within IPv6 (mapped, compatible, NAT64, 6to4) count as well. Returns true
/// for addresses of other families than IP too.
bool is_local_address(const sockaddr& address);

}  // namespace pipeline::net
