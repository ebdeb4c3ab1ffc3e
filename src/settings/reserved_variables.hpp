/// @file
/// The variables that pipe itself sets for a step.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeline::settings {

inline bool is_reserved_variable(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes{"PIPE_INPUT_", "PIPE_OUTPUT_", "PIPE_PARAM_",
                                                     "PIPE_NODE_"};
  constexpr std::array<std::string_view, 11> names{
      "PIPE_RUN_ID",  "PIPE_STEP_NAME",  "PIPE_PIPELINE",     "PIPE_ATTEMPT",
      "PIPE_SCRATCH", "PIPE_CHECKPOINT", "PIPE_COMMAND",      "PIPE_FAILURE_FILE",
      "PIPE_CPUS",    "PIPE_MEMORY",     "PIPE_RENDEZVOUS_ID"};
  return std::ranges::find(names, name) != names.end() ||
         std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace pipeline::settings
