/// @file
/// What docker's own client keeps about its user: ~/.docker, or DOCKER_CONFIG.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace pipeline::docker {

std::filesystem::path config_folder();
/// config.json; an empty object if there is none. Throws EnvironmentError for one that is no JSON
/// object.
nlohmann::json config_file();

}  // namespace pipeline::docker
