/// @file
/// The arguments with which orchestrators are created.
#pragma once

#include <filesystem>
#include <string>

#include <pipeline/settings.hpp>

#include "core/cancel.hpp"
#include "orchestrators/image_lock.hpp"

namespace pipeline::lockfile {
class LockFile;
}
namespace pipeline::blobs {
class RemoteArtifacts;
}

namespace pipeline::orchestrators {

struct OrchestratorOptions {
  std::filesystem::path root;  ///< The pipeline's folder.
  /// The store's folder, for files of an orchestrator (virtual environments).
  std::filesystem::path state;
  std::filesystem::path template_dir;  ///< Overrides the embedded templates.
  std::string run_id;
  /// The lock file of the pipeline's Python packages; outlives the orchestrator. Null: installers
  /// choose versions.
  lockfile::LockFile* lock = nullptr;
  /// Values of the orchestrator's own fields (Entry::connection); absent ones have their defaults.
  StringMap connection;
  /// The remote store, through which attempts elsewhere exchange files; outlives the orchestrator.
  blobs::RemoteArtifacts* artifacts = nullptr;
  std::string owner;  ///< Owner of the objects that are started; empty: owner_of(state).
  /// Recorded images of the steps. If the lock is empty, prepare() fills it; otherwise its images
  /// are used, and no engine is contacted. Null: images are not recorded.
  ImageLock* images = nullptr;
  core::CancelSource* run = nullptr;  ///< Stops the run, and outlives the loop. Null: none.
};

}  // namespace pipeline::orchestrators
