/// @file
/// The engine's port to the remote cache, which machines share: results of steps by key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "store/cache_entries.hpp"
#include "store/published.hpp"

namespace pipeline::engine {

/// An output of a step, as the remote cache knows it.
struct RemoteOutput {
  store::OutputRecord record;
  bool is_executable = false;  ///< Only for a file.
};

/// A step's result, made by any machine.
struct RemoteResult {
  std::string run;  ///< The run that made the result, on its machine.
  std::vector<RemoteOutput> outputs;
};

/// Thrown if a single result in the cache cannot be read or replaced; others can be intact.
class DamagedCacheEntry : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// All functions throw EnvironmentError if the cache cannot be reached.
class RemoteCache {
 public:
  virtual std::string name() const = 0;  ///< Name for messages: `s3://team/pipe`.

  /// Throws EnvironmentError with advice unless results can be read and written.
  virtual async::Task<> check() = 0;
  /// Returns nothing if there is no such result. Throws DamagedCacheEntry for an invalid record.
  virtual async::Task<std::optional<RemoteResult>> find(std::string key,
                                                        core::CancelSource* cancel) = 0;
  /// Returns where a step's outputs are in the cache, as model::Elsewhere::store has it, if results
  /// of other machines may be used without a download; empty if outputs must be downloaded.
  /// @param runs_elsewhere the step's orchestrator takes inputs from the remote store itself
  virtual std::string place(bool runs_elsewhere) const {
    (void)runs_elsewhere;
    return {};
  }
  /// Downloads to the file or folder `to`, which must not exist. Throws DamagedCacheEntry if the
  /// content is missing; the caller compares it with the record.
  virtual async::Task<> fetch(const RemoteOutput& output, std::filesystem::path to,
                              core::CancelSource& cancel) = 0;
  /// Reports that content from fetch() differs from its record; publishing it again replaces it.
  virtual void invalidate(const RemoteOutput& output) = 0;
  /// Sends the outputs that the cache lacks, then the record. Throws DamagedCacheEntry if an output
  /// is missing or damaged there, and cannot be replaced.
  virtual async::Task<> publish(store::CacheEntry entry, core::CancelSource& cancel) = 0;

  /// Returns the record of an artifact's name, which all machines have in common; without versions
  /// if nothing has the name.
  virtual async::Task<store::PublishedName> find_name(std::string name) = 0;
  /// Sends the artifact unless the cache has it, and makes it the newest version of the name unless
  /// an earlier version has the same content.
  virtual async::Task<> publish_as(std::string name, store::PublishedVersion made) = 0;

  virtual ~RemoteCache() = default;
};

}  // namespace pipeline::engine
