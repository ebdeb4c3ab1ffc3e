/// @file
/// Finds the outputs of a recorded run by the names that users write.
#pragma once

#include <string>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::driver {

/// An output of a step; keeps references to the records.
struct NamedOutput {
  std::string name;  ///< STEP.OUTPUT.
  const store::StepRecord& step;
  const store::OutputRecord& output;
};

/// Returns the outputs that `wanted` names: `STEP`, `STEP.OUTPUT`, or either with a selector in
/// brackets, such as `STEP[c=1].OUTPUT`; empty: all outputs of the run.
std::vector<NamedOutput> find_outputs(store::RunStore& store, const store::RunRecord& run,
                                      const std::vector<store::StepRecord>& steps,
                                      const std::string& wanted);

/// Returns the outputs as find_outputs() does. Throws InputError if there is no such step or
/// output.
std::vector<NamedOutput> outputs_named(store::RunStore& store, const store::RunRecord& run,
                                       const std::vector<store::StepRecord>& steps,
                                       const std::string& wanted);

}  // namespace pipeline::driver
