/// @file
/// Results that machines share through a bucket: a record in `results/`, by the step's key, and
/// what it names in `artifacts/`, where clusters read and write it, too.
#pragma once

#include <memory>

#include "engine/remote_cache.hpp"
#include "s3/artifacts.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::remote_cache {

/// Refers to both; asks for nothing by itself.
/// @param artifacts of this machine
std::unique_ptr<engine::RemoteCache> make_bucket_cache(s3::Artifacts& bucket,
                                                       const store::ArtifactStore& artifacts);

}  // namespace pipeline::remote_cache
