/// @file
/// The failure of a step that the kernel killed for lack of memory, in the words of all
/// orchestrators.
#pragma once

#include <string>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "core/quantity.hpp"

namespace pipeline::orchestrators {

/// Returns which memory did not suffice: `its limit is 1 GiB`.
/// @param machine the place whose memory the step shares, such as `this machine`
inline std::string memory_limit_text(const StepSpec& step, const std::string& machine) {
  const auto& limit = step.settings->resources.memory;
  return limit ? "its limit is " + core::format_bytes(*limit)
               : "it has no limit of its own: " + machine + " ran out of memory";
}

/// @param machine see memory_limit_text()
inline Failure memory_failure(const StepSpec& step, const std::string& machine) {
  return {FailureKind::out_of_memory,
          "was killed because it used too much memory (" + memory_limit_text(step, machine) + ")",
          {step.settings->resources.memory
               ? "raise `resources.memory`, or let the step hold less at a time"
               : "run fewer steps at a time (`--jobs`), or limit them with `resources.memory`"},
          {}};
}

}  // namespace pipeline::orchestrators
