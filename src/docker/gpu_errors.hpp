/// @file
/// What goes wrong with GPUs, and what a user can do about it: texts of engines, of NVIDIA's
/// toolkit, of nvidia-smi and of programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

struct GpuTrouble {
  std::string cause;                ///< Begins in lower case, ends without a full stop.
  std::vector<std::string> advice;  ///< What to do, the likeliest first.
  bool passing = false;  ///< The next attempt may do better: another GPU, or a moment later.
};

/// An engine's refusal to make or start a container, or a failure of nvidia-smi; nothing for what
/// is not about GPUs.
std::optional<GpuTrouble> gpu_trouble(std::string_view text);

/// What a program prints that cannot use its GPU; `has_gpus`: GPUs are reserved for it.
std::optional<GpuTrouble> gpu_trouble_in_log(std::string_view log, bool has_gpus);

}  // namespace pipeline::docker
