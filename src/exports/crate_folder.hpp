/// @file
/// The folder of a Workflow Run RO-Crate, written from a state folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "exports/run_facts.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::exports {

struct CrateFolder {
  std::filesystem::path path;  ///< Must not exist.
  std::string license;         ///< An SPDX identifier; empty: not stated.
  /// Called with a line for each file that the crate lacks, with the reason.
  std::function<void(std::string_view)> note;
};

/// Writes the pipeline file, the outputs that this machine has, and their description. Throws
/// InputError if the folder exists.
void write_crate(store::RunStore& store, store::ArtifactStore& artifacts, const RunFacts& facts,
                 const CrateFolder& folder);

}  // namespace pipeline::exports
