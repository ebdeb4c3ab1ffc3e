/// @file
/// The outputs of a run, on this machine or in the remote store.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "blobs/remote_artifacts.hpp"
#include "engine/cache/remote_cache.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::remote_cache {

class RunOutputs {
 public:
  /// Keeps references to the loop and the store.
  /// @param state the store's folder, for temporary files
  /// @param remote the run's remote store; if not given, outputs are only on this machine
  RunOutputs(asio::io_context& loop, store::ArtifactStore& artifacts, std::filesystem::path state,
             const settings::RemoteStoreSettings& remote);

  /// Returns false for an output that is known to be only in the remote store.
  bool is_here(const store::OutputRecord& output) const;
  /// Returns the output's path on this machine, or the URL of its blob in the remote store.
  std::string location(const store::OutputRecord& output) const;
  /// Fetches the output from the remote store unless this machine has it. Throws
  /// EnvironmentError if the remote store no longer has the output, and InputError for a temporary
  /// output that was removed.
  void fetch(const store::StepRecord& step, const store::OutputRecord& output);
  /// Fetches a published version from the remote store unless this machine has it.
  void fetch(const store::PublishedVersion& version);

 private:
  void open(const settings::RemoteStoreSettings& remote);
  /// Returns the note of an artifact that is elsewhere, and opens the noted store unless the run
  /// has a remote store; nothing for other artifacts.
  std::optional<model::Elsewhere> open_noted(const core::Digest& digest);
  void download(const engine::RemoteOutput& output);

  asio::io_context& loop_;
  store::ArtifactStore& artifacts_;
  const std::filesystem::path state_;
  std::optional<blobs::RemoteArtifacts> remote_;
  std::unique_ptr<engine::RemoteCache> cache_;
};

}  // namespace pipeline::remote_cache
