/// @file
/// Artifacts by name in a remote store: the record of each name in `published/NAME.json`, which
/// machines change one after another.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "blobs/remote_artifacts.hpp"
#include "store/artifact_store.hpp"
#include "store/published.hpp"

namespace pipeline::remote_cache {

class RemoteNames {
 public:
  /// Keeps references to the first two arguments.
  /// @param artifacts this machine's artifacts
  /// @param max_wait time after which a change is given up; longer than the lifetimes of several
  /// claims of killed processes
  RemoteNames(blobs::RemoteArtifacts& remote, const store::ArtifactStore& artifacts,
              std::chrono::milliseconds max_wait = std::chrono::minutes(5))
      : remote_(remote), artifacts_(artifacts), max_wait_(max_wait) {}

  /// Returns the record of a name, without versions if nothing has the name. Throws
  /// EnvironmentError if it is damaged.
  async::Task<store::PublishedName> find(std::string name);
  async::Task<std::vector<std::string>> names();
  /// Makes the artifact, which this machine has, the newest version unless the name has a version
  /// with this content. @return the version's number
  async::Task<unsigned> publish(std::string name, store::PublishedVersion made);
  /// Uploads the artifact unless the store has it, and sets `is_executable`, which the store does
  /// not keep.
  async::Task<> send(store::PublishedVersion& made);
  using Edit = std::function<unsigned(store::PublishedName&)>;
  /// Changes the record of a name. No other machine changes it meanwhile. `edit` may be called more
  /// than once, each time with what the store has. @return what the last call returned
  async::Task<unsigned> change(std::string name, Edit edit);

 private:
  struct Found;
  async::Task<Found> read(std::string name);

  blobs::RemoteArtifacts& remote_;
  const store::ArtifactStore& artifacts_;
  const std::chrono::milliseconds max_wait_;
};

}  // namespace pipeline::remote_cache
