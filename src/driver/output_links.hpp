/// @file
/// Readable paths of artifacts: links that have the names of their files, so that a picture opens
/// as one.
#pragma once

#include <filesystem>
#include <string>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

/// Returns `outputs/STEP/DIGEST/FILE` in the state folder, a link to the artifact. It never leads
/// to another one, as the digest is in its path. It is made if it is not there; where that cannot
/// be done, as in a folder that is read-only, returns the artifact's own path.
std::filesystem::path link_to_output(const store::ArtifactStore& artifacts, const std::string& step,
                                     const store::OutputRecord& output);

/// Removes links whose artifacts are gone, and the folders that are empty then.
void remove_dead_links(const std::filesystem::path& state);

}  // namespace pipeline::driver
