/// @file
/// Inputs from outside of the pipeline: the user's files and folders, and downloads.
#pragma once

#include <map>
#include <string>
#include <string_view>
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
      : stats_(services.stats),
        published_(services.store.published()),
        key_values_(services.store.key_values()),
        pins_(services) {}

  /// Reads the records of all published names that the steps take from the remote cache.
  /// @param cache null: the names are read later from this state folder
  /// @param continued the run that is resumed, or for whose step a shell is opened: the versions
  /// that were current when it began count as current. Empty for a new run
  async::Task<> look_up(const PipelineSpec& pipeline, RemoteCache* cache,
                        std::string_view continued = {});
  /// Returns the versions that the steps take as the current ones, for a driver that continues the
  /// run: the run itself may make others current. Empty if the steps take none.
  std::string current_versions(const std::vector<const StepSpec*>& steps);
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
  const store::PublishedVersion* find(const DataSpec& data);
  const store::PublishedName& name_record(const std::string& name);

  store::StatIndex& stats_;
  store::Published& published_;
  store::KeyValues& key_values_;
  PinnedData pins_;
  RemoteCache* cache_ = nullptr;
  std::map<std::filesystem::path, store::UserData> read_;
  std::map<std::string, store::PublishedName> names_;
  /// Numbers by name; 0: the name had no version.
  std::map<std::string, unsigned> current_;
};

/// Returns the file name that a step sees: that of the path or URL if core::is_name() accepts it,
/// else `data`.
std::string file_name_of(const DataSpec& data);

/// Returns the name of the data for messages: its path, or its URL without the query, which may
/// hold a signature.
std::string name_of(const DataSpec& data);

}  // namespace pipeline::engine
