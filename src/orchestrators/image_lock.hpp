/// @file
/// The recorded images of a run's steps. With them, a driver continues the run in an environment
/// without the engine that built the images and without their source files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::orchestrators {

/// The image that a step's pod runs.
struct PodImage {
  std::string id;         ///< `sha256:...`, recorded with the attempt.
  std::string reference;  ///< The reference for the cluster: by digest if it has a registry.
  bool pull = false;      ///< Nodes may pull the image; otherwise they must have it already.
  /// For a step with StepSpec::program: the command that starts the program there.
  std::vector<std::string> program;
  std::string agent;  ///< The image with the agent that starts the step's command; if empty, pods
                      ///< find the agent among the run's files.
  std::map<std::string, std::string> services = {};  ///< References of the images of the step's
                                                     ///< services, by name.
  bool operator==(const PodImage&) const = default;
};

/// The environment of a step, recorded with its image.
struct LockedImage {
  std::string environment, description;  ///< Environment::id and Environment::description.
  std::string packages;  ///< Orchestrator::packages(); empty if the environment does not resolve.
  std::vector<std::string> notices;  ///< Environment::notices.
  PodImage image;
  bool operator==(const LockedImage&) const = default;
};

/// Keyed by the step's name.
using ImageLock = std::map<std::string, LockedImage>;

/// Writes equal images once, because thousands of steps can share an image.
nlohmann::json to_json(const ImageLock& lock);
/// Throws EnvironmentError for invalid JSON.
ImageLock image_lock_of(const nlohmann::json& json);

}  // namespace pipeline::orchestrators
