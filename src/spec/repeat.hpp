/// @file
/// Reads `repeat:`: steps that run in rounds, each with the outputs of the round before, until a
/// condition holds.
#pragma once

#include <vector>

#include "settings/settings.hpp"
#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Maximum number of rounds; a larger number is treated as a mistake.
constexpr unsigned max_rounds = 10'000;

/// The parameter that has the number of the round.
constexpr const char* round_parameter = "round";

/// Returns true if both steps are repeated, in the same rounds.
bool run_together(const StepSpec& a, const StepSpec& b);

/// Sets StepSpec::repeat of the steps that have a `repeat`: a map, or the name of a step with one.
/// The expression of `until` is read by read_conditions().
void read_repeats(std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

/// Reports repeated steps whose rounds could not run, because of their references or of keys that
/// exclude `repeat`. Everything else of the steps must have been read.
void check_repeats(const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
