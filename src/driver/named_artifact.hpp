/// @file
/// Finds an artifact by the name that a user writes, for `why` and `used`.
#pragma once

#include <string>

#include "store/run_store.hpp"

namespace pipeline::driver {

constexpr std::size_t shown_digits = 12;  ///< Hexadecimal digits of a digest in messages.

/// Returns the digest that the words name: the path of a file or folder, an address of data, 64
/// digits, the beginning of an artifact's digest, a published name (`model`, `model@3`), or an
/// output of the latest run (`train.model`). Throws InputError if they name no artifact.
core::Digest digest_named(store::RunStore& store, const std::string& words);

/// Returns the digest of `STEP.OUTPUT` of the run. Throws InputError.
core::Digest output_of_run(store::RunStore& store, const store::RunRecord& run,
                           const std::string& words);

}  // namespace pipeline::driver
