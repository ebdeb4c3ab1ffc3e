/// @file
/// What the pods of a run's steps run in, written down: so that a driver goes on with the run where
/// neither the engine that made the images is, nor the files that they were made of.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::orchestrators {

/// What a step's pod runs in.
struct PodImage {
  std::string id;         ///< `sha256:...`, for the record.
  std::string reference;  ///< As the cluster is told: with a registry by digest.
  bool pull = false;      ///< Nodes may fetch it; else they have it.
  std::vector<std::string>
      program;        ///< For a step with StepSpec::program: the words that start it there.
  std::string agent;  ///< The image that brings what starts the step's command; empty: pods find
                      ///< that among the run's files.
  bool operator==(const PodImage&) const = default;
};

struct LockedImage {
  std::string environment, description;  ///< Environment::id and description.
  std::string packages;                  ///< Orchestrator::packages(); empty: it does not resolve.
  std::vector<std::string> notices;      ///< As description.
  PodImage image;
  bool operator==(const LockedImage&) const = default;
};

/// By step.
using ImageLock = std::map<std::string, LockedImage>;

/// Equal ones are written once: thousands of steps may have the same.
nlohmann::json to_json(const ImageLock& lock);
/// Throws EnvironmentError for what is none.
ImageLock image_lock_of(const nlohmann::json& json);

}  // namespace pipeline::orchestrators
