/// @file
/// The network of an attempt with nodes, in which the address of each container is known before the
/// container exists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

/// The port of rank 0 (PyTorch's default for MASTER_PORT); the ports of the other ranks follow.
/// Each container has an address of its own, so that all ports are free.
inline constexpr unsigned node_port = 29500;

/// Returns `count` addresses of the subnet (`172.18.0.0/16`), without that of its gateway. Throws
/// EnvironmentError if the subnet is not an IPv4 subnet, or is too small.
std::vector<std::string> addresses_in(std::string_view subnet, std::string_view gateway,
                                      unsigned count);

/// Returns true if the engine has not made a network because another one, or a route of its
/// machine, has addresses of the subnet that was asked for.
bool says_subnet_is_taken(std::string_view refusal);

/// Creates the network `options.network`, which remove_services() removes. Throws EnvironmentError.
async::Task<NodeAddresses> make_node_network(docker::EngineApi& engine, const Attempt& attempt,
                                             const ContainerOptions& options, unsigned nodes);

}  // namespace pipeline::orchestrators::docker_engine
