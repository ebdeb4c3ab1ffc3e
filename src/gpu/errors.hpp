/// @file
/// Explains GPU errors in texts of engines, NVIDIA's toolkit, nvidia-smi and programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::gpu {

struct GpuTrouble {
  std::string cause;                ///< Begins in lower case, ends without a full stop.
  std::vector<std::string> advice;  ///< Remedies, likeliest first.
  bool is_transient = false;        ///< The next attempt can succeed, with another GPU or later.
};

/// Explains an engine's refusal to create or start a container, or a failure of nvidia-smi; returns
/// nothing for a text that is not about GPUs.
std::optional<GpuTrouble> gpu_trouble(std::string_view text);

/// Explains the output of a program that cannot use its GPU; returns nothing for any other output.
/// @param has_gpus the step has reserved GPUs
std::optional<GpuTrouble> gpu_trouble_in_log(std::string_view log, bool has_gpus);

}  // namespace pipeline::gpu
