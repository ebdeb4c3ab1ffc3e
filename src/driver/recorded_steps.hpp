/// @file
/// Finds the steps of a recorded run by the names that users write.
#pragma once

#include <string>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::driver {

/// Returns the steps called `name`: `train` (all of its instances, if it had a matrix),
/// `train[c=1]`, `train[0]`, `train.c-1`. Returns an empty list if there is no such step.
std::vector<store::StepRecord> recorded_steps(store::RunStore& store, const store::RunRecord& run,
                                              const std::string& name);

/// Returns the last round of the repeated step `name`; `steps.end()` if there is none.
std::vector<store::StepRecord>::const_iterator last_round(
    const std::vector<store::StepRecord>& steps, const std::string& name);

/// Returns the one step called `name`, or the last round of a repeated step. Throws InputError,
/// with the likely names, if there is none or more than one.
store::StepRecord recorded_step(store::RunStore& store, const store::RunRecord& run,
                                const std::string& name);

}  // namespace pipeline::driver
