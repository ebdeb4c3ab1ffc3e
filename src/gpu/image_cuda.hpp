/// @file
/// What an image says of CUDA: by its name and tag, and where it has been looked into by its
/// variables and labels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pipeline/settings.hpp>

#include "gpu/version.hpp"

namespace pipeline::gpu {

/// An image's own configuration, as the engine shows it.
struct ImageConfig {
  StringMap environment;
  StringMap labels;
};

struct ImageCuda {
  enum class Has { yes, no, unknown };
  Has has = Has::unknown;
  std::optional<Version> version;
  std::string source;   ///< Where that is from: `its tag`, `CUDA_VERSION`, a label's name.
  std::string require;  ///< NVIDIA_REQUIRE_CUDA.
  bool disable_require =
      false;  ///< NVIDIA_DISABLE_REQUIRE: somebody has said that it runs on this driver.
  std::optional<Version> torch;  ///< A torch that its name promises (`pytorch/pytorch:2.1.0-...`).
  std::string framework;         ///< One that its name promises, as `torch`.
  bool is_development = false;   ///< With compiler and headers (`-devel`).
};

/// Whether variables switch off what images demand of the driver.
bool disables_require(const StringMap& environment);

/// @param config nothing where the image is not at hand
ImageCuda image_cuda(std::string_view reference, const std::optional<ImageConfig>& config);

}  // namespace pipeline::gpu
