/// @file
/// Finds an image's CUDA version from its name and tag and, if the image was inspected, from its
/// variables and labels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pipeline/settings.hpp>

#include "gpu/version.hpp"

namespace pipeline::gpu {

/// An image's own configuration, as the engine reports it.
struct ImageConfig {
  StringMap environment;
  StringMap labels;
};

struct ImageCuda {
  enum class Has { yes, no, unknown };  ///< Whether the image has CUDA's libraries.
  Has has = Has::unknown;
  std::optional<Version> version;
  std::string source;   ///< Origin of the version: `its tag`, `CUDA_VERSION`, a label's name.
  std::string require;  ///< Value of NVIDIA_REQUIRE_CUDA.
  /// NVIDIA_DISABLE_REQUIRE is set, so the image claims to run on any driver.
  bool disable_require = false;
  std::optional<Version>
      torch;              ///< Version of torch in the image's name (`pytorch/pytorch:2.1.0-...`).
  std::string framework;  ///< Framework in the image's name, such as `torch`.
  bool is_development = false;  ///< The image has a compiler and headers (`-devel`).
};

/// Returns true if these variables disable the images' driver requirements.
bool disables_require(const StringMap& environment);

/// Returns what is known about CUDA in the image.
/// @param config unset if the image is not available locally
ImageCuda image_cuda(std::string_view reference, const std::optional<ImageConfig>& config);

}  // namespace pipeline::gpu
