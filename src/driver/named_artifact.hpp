/// @file
/// Finds an artifact by the name that a user writes, for `why` and `used`.
#pragma once

#include <string>

#include "store/run_store.hpp"

namespace pipeline::driver {

constexpr std::size_t shown_digits = 12;  ///< Hexadecimal digits of a digest in messages.

struct NamedArtifact {
  core::Digest digest;
  /// The step whose output was named, and the run that executed the step; empty if the user's
  /// words do not name an output of a step.
  std::string step = {}, run = {};
};

/// Returns the artifact that the words name: the path of a file or folder, an address of data, 64
/// digits, the beginning of an artifact's digest, a published name (`model`, `model@3`), or an
/// output of the latest run, as outputs_named() takes it (`train.model`, `train[c=1].model`).
/// Throws InputError if they name no artifact.
NamedArtifact artifact_named(store::RunStore& store, const std::string& words);

/// Returns the one output of the run that the words name. Throws InputError.
NamedArtifact output_of_run(store::RunStore& store, const store::RunRecord& run,
                            const std::string& words);

}  // namespace pipeline::driver
