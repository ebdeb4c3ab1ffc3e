/// @file
/// What a step's Python requirements bring of CUDA: the wheels that hold a CUDA runtime, that need
/// the image's, or that have no GPU code at all.
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
    carries,  ///< Holds (or pulls in) a CUDA runtime.
    needs,    ///< Uses the CUDA libraries of the image.
    cpu,      ///< Has no GPU code.
  };
  Kind kind;
  std::string package;             ///< Normalized: `torch`.
  std::string requirement;         ///< As the user wrote it.
  std::optional<Version> version;  ///< Only where exactly one is asked for.
  std::optional<Version> cuda;     ///< That it was built for, where that is known.
  std::string because;             ///< Of `cuda` or `cpu`: `+cpu`, `the index .../whl/cu118`, ...
  std::string instead;  ///< A requirement that would bring what is missing; may be empty.
};

/// @param requirements   lines of a requirements file
/// @param installer_args DockerSettings::python_package_installer_args
/// @param is_x86         the platform is x86_64, which the package index's defaults are known for
std::vector<Wheel> wheels_of(std::span<const std::string> requirements,
                             const std::map<std::string, Json>& installer_args, bool is_x86);

}  // namespace pipeline::gpu
