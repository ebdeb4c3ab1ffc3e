/// @file
/// Inputs from outside of the pipeline: the user's files and folders, and downloads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "engine/cache/remote_cache.hpp"
#include "engine/data/pinned_data.hpp"
#include "store/published.hpp"
#include "store/run_store.hpp"
#include "store/user_data.hpp"

namespace pipeline::engine {

/// The content of the data that a run uses. Each path is read once, because all steps of a run have
/// to see the same content.
class DataInputs {
 public:
  explicit DataInputs(const Services& services)
      : stats_(services.stats), published_(services.store.published()), pins_(services) {}

  /// Reads the records of all published names that the steps take from the remote cache.
  /// @param cache null: the names are read later from this state folder
  async::Task<> look_up(const PipelineSpec& pipeline, RemoteCache* cache);
  /// Returns the remote cache that has the names; null: this state folder has them.
  RemoteCache* cache() const { return cache_; }
  /// Returns the content of the user's file or folder. Throws EnvironmentError if that cannot be
  /// read.
  const store::UserData& of(const std::filesystem::path& path);
  /// Returns the version of a published artifact. If it does not exist, returns null for optional
  /// data, else throws EnvironmentError.
  const store::PublishedVersion* artifact(const DataSpec& data);
  /// Returns the data at addresses, whose content the pipeline or the lock file pins.
  PinnedData& pins() { return pins_; }
  /// Returns the parts of a step's key for this input, which must have data.
  std::vector<store::KeyPart> parts(const InputSpec& input);

 private:
  store::StatIndex& stats_;
  store::Published& published_;
  PinnedData pins_;
  RemoteCache* cache_ = nullptr;
  std::map<std::filesystem::path, store::UserData> read_;
  std::map<std::string, store::PublishedName> names_;
};

/// Returns the file name that a step sees: that of the path or URL if core::is_name() accepts it,
/// else `data`.
std::string file_name_of(const DataSpec& data);

/// Returns the name of the data for messages: its path, or its URL without the query, which may
/// hold a signature.
std::string name_of(const DataSpec& data);

}  // namespace pipeline::engine
