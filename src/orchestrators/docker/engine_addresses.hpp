/// @file
/// The addresses at which the machines of several engines reach one another, and the engines of a
/// step's nodes.
#pragma once

#include <string>
#include <vector>

#include "async/task.hpp"
#include "docker/engines.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Returns an IPv4 address of each engine's machine: that of RunEngine::address, else that of the
/// host in its URL. For an engine on this machine, returns the address from which this machine
/// reaches the first other one, or 127.0.0.1 if all engines are here. Throws EnvironmentError for
/// a name without an address.
async::Task<std::vector<std::string>> addresses_of(const std::vector<docker::RunEngine>& engines);

/// Returns the index of the engine that runs a node without GPUs. Each engine gets consecutive
/// nodes, and the numbers of nodes of two engines differ by at most one.
std::size_t engine_of_node(unsigned node, unsigned nodes, std::size_t engines);

}  // namespace pipeline::orchestrators::docker_engine
