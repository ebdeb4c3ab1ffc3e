/// @file
/// The addresses at which the machines of several engines reach one another, and the engines of a
/// step's nodes.
#pragma once

#include <string>
#include <vector>

#include "async/task.hpp"
#include "docker/engines.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Returns an IPv4 address of each engine's machine: the one that is named, else that of its URL's
/// host. This machine's is the one from which the first other machine is reached, or 127.0.0.1 if
/// all engines are on this machine. Throws EnvironmentError for a name without an address.
async::Task<std::vector<std::string>> addresses_of(const std::vector<docker::EngineAt>& engines);

/// Returns the index of the engine of a node that has no GPUs: the nodes are dealt in order, as
/// many to each engine as to the others, or one more.
std::size_t engine_of_node(unsigned node, unsigned nodes, std::size_t engines);

}  // namespace pipeline::orchestrators::docker_engine
