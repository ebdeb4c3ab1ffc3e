/// @file
/// The short forms of settings as Kubernetes' own objects; what is given as an object stays as it
/// is. Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators {

/// Of `KEY[=VALUE][:EFFECT]`: Toleration.
nlohmann::json toleration_of(const nlohmann::json& given);
/// Of `NAME=secret/OBJECT/KEY`: EnvVar.
nlohmann::json env_of(const nlohmann::json& given);
/// Of `secret/OBJECT`: EnvFromSource.
nlohmann::json env_from_of(const nlohmann::json& given);

struct VolumeAndMount {
  nlohmann::json volume;
  nlohmann::json mount;  ///< Null for an object, whose mount is given beside it.
};
/// Of `pvc/CLAIM:TARGET[:ro|rw]`: Volume and VolumeMount.
VolumeAndMount volume_of(const nlohmann::json& given, const std::string& name);

}  // namespace pipeline::orchestrators
