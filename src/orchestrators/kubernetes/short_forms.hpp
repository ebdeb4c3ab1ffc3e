/// @file
/// Expands the short forms of settings to Kubernetes objects; objects stay unchanged. Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators::kubernetes {

/// Expands `KEY[=VALUE][:EFFECT]` to a Toleration.
nlohmann::json toleration_of(const nlohmann::json& given);
/// Expands `NAME=secret/OBJECT/KEY` to an EnvVar.
nlohmann::json env_of(const nlohmann::json& given);
/// Expands `secret/OBJECT` to an EnvFromSource.
nlohmann::json env_from_of(const nlohmann::json& given);

struct VolumeAndMount {
  nlohmann::json volume;
  nlohmann::json mount;  ///< Null for an object, whose mount is given separately.
};
/// Expands `pvc/CLAIM:TARGET[:ro|rw]` to a Volume and a VolumeMount.
VolumeAndMount volume_of(const nlohmann::json& given, const std::string& name);

}  // namespace pipeline::orchestrators::kubernetes
