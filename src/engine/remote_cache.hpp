/// @file
/// The engine's port to a store that machines share: what steps have made, by the steps' keys.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

struct RemoteOutput {
  store::OutputRecord record;
  bool is_executable = false;  ///< Of a file.
};

/// What a step has made, on whatever machine.
struct RemoteResult {
  std::string run;  ///< Of that machine.
  std::vector<RemoteOutput> outputs;
};

/// What the store has of one result is not what it should be; it says nothing of others.
class DamagedCacheEntry : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// All throw EnvironmentError where the store cannot be asked.
class RemoteCache {
 public:
  virtual std::string name() const = 0;  ///< For people: `s3://team/pipe`.

  /// Throws, with what to do, unless results can be read and written.
  virtual async::Task<> check() = 0;
  /// Nothing if nobody has shared one. Throws DamagedCacheEntry for a record that makes no sense.
  virtual async::Task<std::optional<RemoteResult>> find(std::string key,
                                                        core::CancelSource* cancel) = 0;
  /// Makes the file or folder `to`, where nothing is. Throws DamagedCacheEntry if its content is
  /// not there; whether it is the right one the caller sees.
  virtual async::Task<> fetch(const RemoteOutput& output, std::filesystem::path to,
                              core::CancelSource& cancel) = 0;
  /// What fetch() has brought was not what the record says: should this machine make it, it takes
  /// the other's place.
  virtual void invalidate(const RemoteOutput& output) = 0;
  /// Sends what the step has made, as far as the store lacks it, then the record.
  virtual async::Task<> publish(store::CacheEntry entry, core::CancelSource& cancel) = 0;

  virtual ~RemoteCache() = default;
};

}  // namespace pipeline::engine
