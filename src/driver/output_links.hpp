/// @file
/// Readable paths of artifacts: links that have the names of their files, so that programs
/// recognise their type.
#pragma once

#include <filesystem>
#include <string>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

/// Returns `outputs/STEP/DIGEST/FILE` in the state folder, a link to the artifact; because of the
/// digest in the path, the link never leads to another artifact. Makes the link if it is missing;
/// returns the artifact's own path if that fails, as in a read-only folder. For an artifact that
/// only a remote store has, returns the address of its blob.
std::filesystem::path link_to_output(const store::ArtifactStore& artifacts, const std::string& step,
                                     const store::OutputRecord& output);

/// Removes links whose artifacts are gone, and the folders that are then empty.
void remove_dead_links(const std::filesystem::path& state);

}  // namespace pipeline::driver
