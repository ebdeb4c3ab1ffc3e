/// @file
/// A state folder's records in SQLite: one writer per process, any number of processes; in WAL mode
/// if all processes share one kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/attempts.hpp"
#include "store/cache_entries.hpp"
#include "store/driver_locks.hpp"
#include "store/key_values.hpp"
#include "store/lineage.hpp"
#include "store/metrics.hpp"
#include "store/published.hpp"
#include "store/records.hpp"
#include "store/runs.hpp"
#include "store/state_paths.hpp"

namespace pipeline::store {

/// Whether artifacts that only outputs with `temp` name are included.
enum class TempArtifacts { included, left_out };

/// Hands out the records by subject, and does what concerns all of them. Throws EnvironmentError if
/// the folder or database cannot be used (no permission, disk full, damaged, made by a newer
/// version).
class RunStore {
 public:
  /// Opens or creates `folder`/pipe.db. Migrations run once. If this process may only read the
  /// file, it can read the store, and each write throws EnvironmentError.
  explicit RunStore(const std::filesystem::path& folder);
  ~RunStore();
  RunStore(RunStore&&) noexcept;

  Runs& runs();
  Attempts& attempts();
  Metrics& metrics();
  CacheEntries& cache();
  Lineage& lineage();
  Published& published();
  KeyValues& key_values();
  const DriverLocks& drivers() const;
  const StatePaths& paths() const;
  const std::filesystem::path& folder() const { return paths().folder(); }

  /// Permanently allows processes of several machines to use the store, on a file system with POSIX
  /// locks: disables the write-ahead log, which needs shared memory. Throws EnvironmentError if
  /// another process has it open.
  void share();
  /// Returns true if this process may only read the store, as another user's.
  bool is_read_only() const;
  /// Throws EnvironmentError if is_read_only(). Call it before work that has to be recorded.
  void require_writable() const;
  /// From now on, each write by this object throws EnvironmentError.
  void forbid_writes();
  /// Returns a number that changes when another process has committed something; cheap.
  std::int64_t data_version();

  /// Sets a function that is called before each commit, for example to check that this process may
  /// still write; it must not throw. An empty function disables it.
  void before_commit(std::function<void()> check);
  /// Commits all writes of `work` together, or none if it throws.
  void transaction(const std::function<void()>& work);

  /// Removes a run and what belongs to it alone: steps, attempts, logs, and cache entries that it
  /// made (unless `keep_cache`). Does nothing if the run has or may have a driver.
  /// @return whether it was removed
  bool remove_run(const std::string& run, bool keep_cache);
  /// Copies another store's record of this run: status, steps and attempts; the whole record if the
  /// run is unknown here. Its results do not become cache entries of this machine; they are fetched
  /// when needed.
  void import_run(const RunStore& from, const std::string& run);
  /// Returns every artifact digest that a run, a cache entry or a published name names, and those
  /// of the code of attempts.
  std::vector<core::Digest> referenced_artifacts(
      TempArtifacts temp_artifacts = TempArtifacts::included);

  /// Reads the whole database, and returns its errors, one sentence each.
  std::vector<std::string> check();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::store
