/// @file
/// Finds a recorded attempt of a step, in the run that made the step's result.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/workspace.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

struct RecordedAttempt {
  store::RunRecord run;  ///< The run that made the result, if the step was reused.
  store::StepRecord step;
  store::AttemptRecord attempt;
};

/// Returns an attempt of the one step called `name`. Throws InputError if there is none.
/// @param number of the attempt; 0: the last one
RecordedAttempt recorded_attempt(store::RunStore& store, store::RunRecord run,
                                 const std::string& name, unsigned number);

/// Returns the attempt with this number. Throws InputError if there is none.
/// @param attempts all attempts of one step in one run, at least one
/// @param number   0: the last one
store::AttemptRecord attempt_numbered(const std::vector<store::AttemptRecord>& attempts,
                                      unsigned number);

/// Returns the digest of the code that the attempt ran. Throws InputError, which names the run's
/// commit, if the store does not have that code.
core::Digest code_of(Workspace& workspace, const RecordedAttempt& found);

/// Returns the files of a stored tree of code, sorted by their paths.
std::vector<store::TreeEntry> code_files(const std::filesystem::path& stored);

}  // namespace pipeline::driver
