/// @file
/// The remote cache in a remote store: records in `results/`, by the step's key, and the artifacts
/// that they name in `artifacts/`, which clusters use, too.
#pragma once

#include <memory>

#include "blobs/remote_artifacts.hpp"
#include "engine/cache/remote_cache.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::remote_cache {

/// Returns the cache, which keeps references to both arguments. Makes no request.
/// @param artifacts this machine's artifacts
std::unique_ptr<engine::RemoteCache> make_blob_cache(blobs::RemoteArtifacts& remote,
                                                     const store::ArtifactStore& artifacts);

}  // namespace pipeline::remote_cache
