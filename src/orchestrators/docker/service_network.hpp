/// @file
/// The networks of attempts with services, on the engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "docker/engine_api.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Creates a network, also if the engine is lost meanwhile. The caller has removed an earlier
/// network of the same name and labels. @param body see network_body()
async::Task<> make_network(docker::EngineApi& engine, nlohmann::json body);

/// Connects a container that has not been started with another network.
/// @param address in that network; empty: the engine chooses
async::Task<> join_network(docker::EngineApi& engine, std::string network, std::string container,
                           std::string address);

/// Removes the services with these labels, and their networks. Retries the removal of a network
/// that is in use, because other containers in the networks are being removed at the same time.
async::Task<> remove_services(docker::EngineApi& engine, std::vector<std::string> labels);

/// Removes the networks of runs that have no driver.
/// @param labels of the networks' owner
async::Task<> remove_dead_networks(docker::EngineApi& engine, std::vector<std::string> labels,
                                   const std::function<bool(const std::string&)>& is_alive);

}  // namespace pipeline::orchestrators::docker_engine
