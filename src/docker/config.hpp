/// @file
/// The configuration of docker's own client: ~/.docker, or DOCKER_CONFIG.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace pipeline::docker {

/// Returns DOCKER_CONFIG, or ~/.docker.
std::filesystem::path config_folder();
/// Returns config.json; an empty object if there is none. Throws EnvironmentError if the file is
/// not a JSON object.
nlohmann::json config_file();

}  // namespace pipeline::docker
