/// @file
/// The outputs of a run, on this machine or in the remote cache's bucket.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/cache/remote_cache.hpp"
#include "s3/artifacts.hpp"
#include "settings/artifact_store.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::remote_cache {

class RunOutputs {
 public:
  /// Keeps references to the loop and the store.
  /// @param state the store's folder, for temporary files
  /// @param bucket the run's bucket; if not given, outputs are only on this machine
  RunOutputs(asio::io_context& loop, store::ArtifactStore& artifacts, std::filesystem::path state,
             const settings::ArtifactStoreSettings& bucket);

  /// Returns false for an output that is known to be only in the bucket.
  bool is_here(const store::OutputRecord& output) const;
  /// The output's path on this machine, or the URL of its object in the bucket.
  std::string location(const store::OutputRecord& output) const;
  /// Fetches the output from the bucket unless this machine has it. Throws EnvironmentError if the
  /// bucket no longer has it.
  void fetch(const store::StepRecord& step, const store::OutputRecord& output);
  /// The same for a version that the bucket has under a name.
  void fetch(const store::PublishedVersion& version);

 private:
  void bring(const engine::RemoteOutput& output);

  asio::io_context& loop_;
  store::ArtifactStore& artifacts_;
  const std::filesystem::path state_;
  std::optional<s3::BucketArtifacts> bucket_;
  std::unique_ptr<engine::RemoteCache> cache_;
};

}  // namespace pipeline::remote_cache
