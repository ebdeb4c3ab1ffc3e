/// @file
/// What is remembered of runs: SQLite, one writer per process, any number of processes; in WAL mode
/// where one kernel has the folder to itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pipeline/events.hpp>

#include "core/digest.hpp"
#include "store/process_id.hpp"
#include "store/state_lock.hpp"

namespace pipeline::store {

/// What can be said from here of a run's driver. Where nothing can be said, nobody may take it for
/// dead.
enum class Liveness { alive, dead, unknown };

/// What tells whether a driver lives: a lock that its kernel holds for it, a heartbeat, or nothing
/// but its process, as of a driver of an earlier version.
enum class SignOfLife { process, lock, heartbeat };

/// A Lease of a cluster, and the Job of the same name whose pods take it.
struct LeaseId {
  std::string context;  ///< Of the kubeconfig of whoever began the run; empty: its current one.
  std::string name_space, name;
  bool operator==(const LeaseId&) const = default;
};

/// Who drives a run: a process of this machine; or, if a Lease is named, whoever holds it.
struct Driver {
  ProcessId process;
  LeaseId lease;
  SignOfLife sign = SignOfLife::process;  ///< Of the process; add_run() and resume_run() fill it.
  std::string host{};                     ///< Likewise: the name of its machine, for messages.
  bool is_elsewhere() const { return !lease.name.empty(); }
};

struct RunRecord {
  std::string id, pipeline, orchestrator;
  std::string file;        ///< The pipeline's file, absolute.
  std::string parameters;  ///< JSON object.
  std::string git_commit;  ///< Empty: no repository.
  bool git_dirty = false;
  RunStatus status = RunStatus::running;
  WallTime started{}, ended{};       ///< ended: 0 while it runs.
  std::chrono::milliseconds took{};  ///< By the monotonic clock.
  Driver driver;
  std::string same_as;  ///< A run that reused every step of another one keeps no rows of its own.
  std::size_t steps = 0, cached = 0, failed = 0;
  std::vector<std::string> tags;  ///< The pipeline's, as the run began.
};

struct OutputRecord {
  std::string name, file_name;
  core::Digest digest;
  bool is_directory = false;
  std::uint64_t bytes = 0;
};

struct StepRecord {
  std::string run, name;
  StepStatus status = StepStatus::pending;
  std::string key;          ///< Digest of the key's parts, hex; empty until known.
  std::string reused_from;  ///< Run that made it, for a cached step.
  WallTime started{}, ended{};
  std::chrono::milliseconds took{};
  unsigned attempts = 0;
  std::string image;       ///< Image id or interpreter.
  std::string message;     ///< Why it failed or was skipped.
  std::string parameters;  ///< JSON object.
  std::vector<OutputRecord> outputs;
};

struct AttemptRecord {
  std::string run, step;
  unsigned number = 1;
  WallTime started{}, ended{};
  std::chrono::milliseconds took{};
  std::optional<int> exit_code;
  std::string failure_kind, message;
  std::string log;               ///< File name below the store's logs/ folder.
  std::vector<event::Gpu> gpus;  ///< That it held.
};

/// One named part of a cache key, as `image` or `input data`. The value is a digest or a short
/// text; never a secret.
struct KeyPart {
  std::string name, value;
};

/// An earlier success that a step may reuse.
struct CacheEntry {
  std::string key, run, step;
  std::vector<OutputRecord> outputs;
};

/// Kind of the blob, one a run, that goes with its run.
inline constexpr const char* invocation_kind = "invocation";
/// Likewise, of a run that was handed to a driver elsewhere.
inline constexpr const char* detached_kind = "detached";
/// Likewise, of one whose driver shares no files with us: how much of what it has saved is here; of
/// its store and of its logs.
inline constexpr const char *saved_kind = "saved", *brought_kind = "brought";

/// Throws EnvironmentError when the folder or database cannot be used (no permission, disk full,
/// damaged, made by a newer version).
class RunStore {
 public:
  /// Opens or creates `folder`/pipe.db. Migrations run once.
  explicit RunStore(const std::filesystem::path& folder);
  ~RunStore();
  RunStore(RunStore&&) noexcept;

  /// From now on processes of several machines may use it, on a file system with POSIX locks: a
  /// write-ahead log wants memory that all of them share. For good. Throws EnvironmentError if
  /// somebody has it open.
  void share();

  const std::filesystem::path& folder() const;
  /// Where the attempts of a run have their folders.
  std::filesystem::path work_folder(const std::string& run) const {
    return folder() / "work" / run;
  }
  std::filesystem::path log_file(const std::string& name) const;  ///< folder/logs/name
  std::filesystem::path kept_folder(const std::string& run)
      const;  ///< folder/detached/run: the files of a run that is driven elsewhere.

  /// Called before each commit from now on, such as to make sure that this process may still write;
  /// must not throw. None: nothing is called.
  void before_commit(std::function<void()> check);

  /// All that `work` writes is committed together, or not at all if it throws.
  void transaction(const std::function<void()>& work);

  /// If it is recorded as running, and this process drives it, the store holds the run's lock from
  /// here until finish_run(), or to its own end.
  void add_run(const RunRecord& run);
  void resume_run(const RunRecord& run);  ///< It runs again: driver, orchestrator, number of steps.
  void finish_run(const RunRecord& run);  ///< Status, end, duration, counts, same_as.
  /// Of the driver of a run that is recorded as running.
  Liveness liveness(const RunRecord& run) const;
  /// Keeps drivers from resuming this run while what is left of it is removed; they wait meanwhile.
  /// Nothing while it has a driver.
  std::optional<StateLock> hold(const std::string& run) const;
  /// Keeps artifacts where they are; waits for a process that removes some.
  /// @param on_wait called before it waits
  StateLock keep_artifacts(const std::function<void()>& on_wait = {}) const;
  /// For removing artifacts: nothing while any process keeps them.
  std::optional<StateLock> hold_artifacts() const;
  void put_step(const StepRecord& step);  ///< Inserts or replaces.
  void put_attempt(const AttemptRecord& attempt);
  /// Remembers a success under its key, with the key's parts and outputs.
  void add_cache_entry(const CacheEntry& entry, const std::string& pipeline,
                       const std::vector<KeyPart>& parts);

  std::optional<CacheEntry> find_cached(const std::string& key);
  void remove_cached(const std::string& key);
  /// Parts of the newest key that this step of this pipeline succeeded with, and the run; to say
  /// what changed.
  std::optional<std::pair<std::string, std::vector<KeyPart>>> last_key_parts(
      const std::string& pipeline, const std::string& step);

  /// Newest first. @param limit 0: all @param tag only runs that have this tag; empty: all
  std::vector<RunRecord> runs(std::size_t limit = 0, const std::string& pipeline = {},
                              const std::string& tag = {});
  /// By identifier, unique prefix or `latest`. Nothing if there is none; InputError if the prefix
  /// is ambiguous.
  std::optional<RunRecord> find_run(const std::string& id_or_prefix);
  std::vector<StepRecord> steps(
      const std::string& run);  ///< In the order of the file; follows same_as.
  std::vector<AttemptRecord> attempts(const std::string& run, const std::string& step);
  /// Runs recorded as running whose driver is dead become interrupted; returns them.
  /// @param gone a run whose driver is known to be dead, whatever liveness() says
  std::vector<RunRecord> mark_dead_runs(const std::string& gone = {});
  /// Removes a run and what belongs to it alone: steps, attempts, logs, cache entries it made
  /// (unless `keep_cache`). Nothing is removed of a run that has a driver, or may have one.
  /// @return whether it was removed
  bool remove_run(const std::string& run, bool keep_cache);
  /// Reads the whole database. @return what is wrong with it, a sentence each
  std::vector<std::string> check();
  /// Takes what another store has of this run: how far it is, its steps and attempts; where the run
  /// is not known here, all of it. Its results are not made this machine's own: whoever needs them
  /// fetches them.
  void take_run(const RunStore& from, const std::string& run);
  /// Every artifact digest that a run or a cache entry names.
  std::vector<core::Digest> referenced_artifacts();

  /// A small table for other rooms' memory, such as the digests of files by stat (see StatIndex) or
  /// compiled plans. Values are bytes.
  void put_blob(const std::string& kind, const std::string& key, std::string_view value);
  std::optional<std::string> get_blob(const std::string& kind, const std::string& key);
  void remove_blob(const std::string& kind, const std::string& key);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::store
