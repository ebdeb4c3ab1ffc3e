/// @file
/// The remote cache in a bucket: records in `results/`, by the step's key, and the artifacts that
/// they name in `artifacts/`, which clusters use, too.
#pragma once

#include <memory>

#include "engine/cache/remote_cache.hpp"
#include "s3/artifacts.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::remote_cache {

/// Keeps references to both arguments; makes no request by itself.
/// @param artifacts this machine's artifacts
std::unique_ptr<engine::RemoteCache> make_bucket_cache(s3::BucketArtifacts& bucket,
                                                       const store::ArtifactStore& artifacts);

}  // namespace pipeline::remote_cache
