/// @file
/// Classifies a step's Python requirements by CUDA: wheels that contain a CUDA runtime, wheels that
/// need the image's CUDA, and wheels without GPU code.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/json.hpp>

#include "gpu/version.hpp"

namespace pipeline::gpu {

struct Wheel {
  enum class Kind {
    carries,  ///< Contains or depends on a CUDA runtime.
    needs,    ///< Uses the CUDA libraries of the image.
    cpu,      ///< Has no GPU code.
  };
  Kind kind;
  std::string package;             ///< Normalized name, such as `torch`.
  std::string requirement;         ///< The requirement as the user wrote it, without `--hash`.
  std::optional<Version> version;  ///< Set only if exactly one version is asked for.
  std::optional<Version> cuda;     ///< The version that the wheel was built for, if known.
  std::string because;  ///< Origin of `cuda` or `cpu`: `+cpu`, `the index .../whl/cu118`, ...
  std::string instead;  ///< A requirement that would install what is missing; may be empty.
};

/// Classifies the requirements.
/// @param requirements   lines of a requirements file
/// @param installer_args DockerSettings::python_package_installer_args
/// @param is_x86         the platform is x86_64, for which the package index's defaults are known
std::vector<Wheel> wheels_of(std::span<const std::string> requirements,
                             const std::map<std::string, Json>& installer_args, bool is_x86);

}  // namespace pipeline::gpu
