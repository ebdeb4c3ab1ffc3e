/// @file
/// The records of runs in SQLite: one writer per process, any number of processes; in WAL mode if
/// all processes share one kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pipeline/events.hpp>

#include "core/digest.hpp"
#include "core/usage.hpp"
#include "store/metrics.hpp"
#include "store/process_id.hpp"
#include "store/state_lock.hpp"

namespace pipeline::store {

/// The liveness of a run's driver, as seen from this machine. A driver of unknown liveness must not
/// be treated as dead.
enum class Liveness { alive, dead, unknown };

/// How a driver's liveness is determined: by a kernel lock, by a heartbeat, or, for drivers of an
/// earlier version, only by the process.
enum class SignOfLife { process, lock, heartbeat };

/// A Lease of a cluster, and the Job of the same name whose pods acquire it.
struct LeaseId {
  std::string context;  ///< Context in the kubeconfig of the user who started the run; if empty,
                        ///< the current context.
  std::string name_space, name;
  bool operator==(const LeaseId&) const = default;
};

/// The driver of a run: a process of this machine or, if a Lease is named, its holder.
struct Driver {
  ProcessId process;
  LeaseId lease;
  SignOfLife sign =
      SignOfLife::process;  ///< Sign of life of the process; filled by add_run() and resume_run().
  std::string
      host{};  ///< Name of the process's machine for messages; filled by the same functions.
  bool is_elsewhere() const { return !lease.name.empty(); }
};

struct RunRecord {
  std::string id, pipeline, orchestrator;
  std::string file;        ///< Absolute path of the pipeline's file.
  std::string parameters;  ///< JSON object.
  std::string git_commit;  ///< Empty without a repository.
  bool git_dirty = false;
  RunStatus status = RunStatus::running;
  WallTime started{}, ended{};       ///< ended: 0 while the run is running.
  std::chrono::milliseconds took{};  ///< By the monotonic clock.
  Driver driver;
  std::string
      same_as;  ///< The run whose steps this run reused entirely; it then has no rows of its own.
  std::size_t steps = 0, cached = 0, failed = 0;
  std::vector<std::string> tags;  ///< Tags of the pipeline when the run started, and `pipe tag`.
  std::string note;               ///< `pipe note`.
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
  std::string reused_from;  ///< The run that made the result, for a reused step.
  WallTime started{}, ended{};
  std::chrono::milliseconds took{};
  unsigned attempts = 0;
  std::string image;       ///< Image id or interpreter.
  std::string message;     ///< Why the step failed or was skipped.
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
  std::vector<event::Gpu> gpus;  ///< GPUs that the attempt held.
  core::Usage usage;
  core::Phases phases;
  std::string code;   ///< Digest of the tree of the step's code, hex; empty if it is not known.
  std::string node;   ///< Name of the machine that it ran on; empty if it is not known.
  std::string image;  ///< What it ran in: an image id, or an interpreter; empty if it is not known.
};

/// One named part of a cache key, such as `image` or `input data`. The value is a digest or a short
/// text; never a secret.
struct KeyPart {
  std::string name, value;
  /// Of an input that is one output: the step that made it, as others can have made the same. No
  /// part of the key.
  std::string maker = {};
  bool operator==(const KeyPart&) const = default;
};

/// One of the artifacts of a gathered input.
struct GatheredPiece {
  core::Digest artifact;
  std::string step;  ///< Whose output it is: others can have made the same. Empty if not recorded.
};

/// The artifacts that a step's matrix takes its values from, by axis.
using TakenValues = std::vector<std::pair<std::string, core::Digest>>;
/// One of a step's inputs, with the digest that stands for it in its key, or the artifact that its
/// matrix takes.
struct InputDigest {
  std::string name;
  core::Digest digest;
  std::string maker = {};  ///< As in KeyPart.
};
using InputDigests = std::vector<InputDigest>;

/// Returns the digest of the artifact that the part of an input, `input NAME`, names in its value;
/// nothing if it names none.
std::optional<core::Digest> artifact_of(const KeyPart& input);

/// An earlier success that a step may reuse.
struct CacheEntry {
  std::string key, run, step;
  std::vector<OutputRecord> outputs;
};

/// Kind of a blob that is removed with its run: the run's invocation.
inline constexpr const char* invocation_kind = "invocation";
/// The same, for a detached run: its DetachedRecord.
inline constexpr const char* detached_kind = "detached";
/// The same, for a detached run whose driver shares no files with this machine: how much of the
/// driver's store (saved) and logs (brought) has been downloaded.
inline constexpr const char *saved_kind = "saved", *brought_kind = "brought";

/// What the pipeline declared of the run's steps: see engine/declared.hpp.
inline constexpr const char* declared_kind = "declared";

/// Beginning of the names of the files with a detached run's events, beside its attempts' logs.
inline constexpr std::string_view events_prefix = "events.";

/// Returns the name of an attempt's log below the store's logs/ folder.
std::string log_name(const std::string& run, const std::string& step, unsigned attempt);

/// Throws EnvironmentError if the folder or database cannot be used (no permission, disk full,
/// damaged, made by a newer version).
class RunStore {
 public:
  /// Opens or creates `folder`/pipe.db. Migrations run once. If this process may only read the
  /// file, it can read the store, and each write throws EnvironmentError.
  explicit RunStore(const std::filesystem::path& folder);
  ~RunStore();
  RunStore(RunStore&&) noexcept;

  /// Permanently allows processes of several machines to use the store, on a file system with POSIX
  /// locks: disables the write-ahead log, which needs shared memory. Throws EnvironmentError if
  /// another process has it open.
  void share();

  const std::filesystem::path& folder() const;
  /// Returns folder/logs/name.
  std::filesystem::path log_file(const std::string& name) const;
  /// Returns folder/work/run, the parent of the folders of a run's attempts.
  std::filesystem::path work_folder(const std::string& run) const {
    return folder() / "work" / run;
  }
  /// Returns folder/failed/run: what failed attempts wrote to their outputs, below STEP.ATTEMPT.
  std::filesystem::path failed_folder(const std::string& run) const;
  /// Returns folder/detached/run, the files of a detached run.
  std::filesystem::path kept_folder(const std::string& run) const;

  /// Returns true if this process may only read the store, as another user's.
  bool is_read_only() const;
  /// Throws EnvironmentError if is_read_only(); for what should not begin then.
  void require_writable() const;
  /// From now on, each write by this object throws EnvironmentError.
  void forbid_writes();
  /// Returns a number that changes when another process has committed something; cheap.
  std::int64_t version();

  /// Sets a function that is called before each commit, for example to check that this process may
  /// still write; it must not throw. An empty function disables it.
  void before_commit(std::function<void()> check);

  /// Commits all writes of `work` together, or none if it throws.
  void transaction(const std::function<void()>& work);

  /// Records a run. If it is running and this process drives it, the store holds the run's lock
  /// until finish_run(), or until it is destroyed.
  void add_run(const RunRecord& run);
  void resume_run(const RunRecord& run);  ///< Marks the run as running again, with a new driver,
                                          ///< orchestrator and number of steps.
  void finish_run(const RunRecord& run);  ///< Records status, end, duration, counts and same_as.
  /// Returns the liveness of the driver of a run that is recorded as running.
  Liveness liveness(const RunRecord& run) const;
  /// Records that the driver of a run, of which this folder has a copy, was just heard of.
  void note_life(const std::string& run) const;
  /// Prevents drivers from resuming this run while its remains are removed; they wait meanwhile.
  /// Returns nothing while the run has a driver.
  std::optional<StateLock> hold(const std::string& run) const;
  /// Prevents the removal of artifacts; waits for a process that is removing some.
  /// @param on_wait called before it waits
  StateLock keep_artifacts(const std::function<void()>& on_wait = {}) const;
  /// Returns the lock for removing artifacts; nothing while any process keeps them.
  std::optional<StateLock> hold_artifacts() const;
  void put_step(const StepRecord& step);  ///< Inserts or replaces a step.
  /// Removes a step that has become its instances. @param steps the new number of the run's steps
  void expand_step(const std::string& run, const std::string& step, std::size_t steps);
  /// Removes a step that the run's pipeline has no more, with its attempts and metrics.
  void remove_step(const std::string& run, const std::string& step);
  void put_attempt(const AttemptRecord& attempt);
  /// Removes all attempts of a step, with their metrics.
  void remove_attempts(const std::string& run, const std::string& step);
  /// Appends points to a metric of an attempt, which has `first` points already.
  void add_points(const MetricRecord& metric, std::uint64_t first,
                  std::span<const MetricPoint> points);
  /// Removes all metrics of an attempt, which will report them again.
  void remove_metrics(const std::string& run, const std::string& step, unsigned attempt);
  /// Returns the metrics of a run's steps, in the order of the steps; those of reused steps are
  /// those of the run that made them. @param step only this step; empty: all
  std::vector<MetricRecord> metrics(const std::string& run, const std::string& step = {});
  /// Returns all points of a metric, in the order in which they were reported.
  std::vector<MetricPoint> points(const MetricRecord& metric);
  /// Replaces the run's tags.
  void tag_run(const std::string& run, const std::vector<std::string>& tags);
  /// Replaces the run's note.
  void note_run(const std::string& run, const std::string& note);
  /// Returns the newest succeeded step that made an artifact with this digest.
  /// @param by when that had ended, such as the start of a step that took the artifact; if none
  /// had, by the clocks of the machines, any @param step of several, the one with this name
  std::optional<StepRecord> maker(const core::Digest& artifact,
                                  std::optional<WallTime> by = std::nullopt,
                                  const std::string& step = {});
  /// Records which artifacts a gathered input consists of, by the digest that stands in keys.
  void add_gathered(const core::Digest& input, const std::vector<GatheredPiece>& pieces);
  /// Returns the artifacts of a gathered input, in order; none if it is not known.
  std::vector<GatheredPiece> gathered(const core::Digest& input);
  /// Records which artifacts the matrix of the step with this key takes values from.
  void add_taken_values(const std::string& key, const TakenValues& values);
  TakenValues taken_values(const std::string& key);
  /// Returns the inputs of each of the run's steps that has any, by the step's key.
  std::unordered_map<std::string, InputDigests> inputs_of_run(const std::string& run);
  InputDigests inputs_of_step(const std::string& key);
  /// Removes what add_gathered() and add_taken_values() have recorded of cache entries that are
  /// gone.
  void remove_unused_origins();
  /// Returns the succeeded steps that took the artifact as an input, or as a part of a gathered
  /// one, the oldest first.
  std::vector<StepRecord> users(const core::Digest& artifact);
  /// Records a success under its key, with the key's parts and outputs.
  void add_cache_entry(const CacheEntry& entry, const std::string& pipeline,
                       const std::vector<KeyPart>& parts);

  /// Returns true if any step has ever succeeded; otherwise no step needs to be looked up.
  bool has_successes();
  std::optional<CacheEntry> find_cached(const std::string& key);
  void remove_cached(const std::string& key);
  /// Returns the parts of the newest key with which this step of this pipeline succeeded, and the
  /// run; used to report what changed.
  std::optional<std::pair<std::string, std::vector<KeyPart>>> last_key_parts(
      const std::string& pipeline, const std::string& step);

  /// Returns the parts of a key with which a step succeeded; none if they are not known.
  std::vector<KeyPart> key_parts(const std::string& key);
  /// Returns runs, newest first. @param limit 0: all @param tag only runs that have this tag;
  /// empty: all
  std::vector<RunRecord> runs(std::size_t limit = 0, const std::string& pipeline = {},
                              const std::string& tag = {});
  /// Finds a run by identifier, unique prefix, `latest` or `latest-success`, the last two also of
  /// one pipeline: `digits@latest`. Returns nothing if there is none; throws InputError if the
  /// prefix is ambiguous.
  std::optional<RunRecord> find_run(const std::string& id_or_prefix);
  /// Returns the steps in the order of the file; follows same_as. @param only this one; empty: all
  std::vector<StepRecord> steps(const std::string& run, const std::string& only = {});
  std::vector<AttemptRecord> attempts(const std::string& run, const std::string& step);
  /// Returns the attempts of all steps of a run, by step and number.
  std::vector<AttemptRecord> attempts(const std::string& run);
  /// Calls `use` with each attempt of the pipeline's runs, in the order in which they began.
  void for_each_attempt(const std::string& pipeline,
                        const std::function<void(const AttemptRecord&)>& use);
  /// Marks running runs with dead drivers as interrupted and returns them.
  /// @param gone a run whose driver is known to be dead, whatever liveness() returns
  std::vector<RunRecord> mark_dead_runs(const std::string& gone = {});
  /// Removes a run and what belongs to it alone: steps, attempts, logs, and cache entries that it
  /// made (unless `keep_cache`). Does nothing if the run has or may have a driver.
  /// @return whether it was removed
  bool remove_run(const std::string& run, bool keep_cache);
  /// Reads the whole database. @return its errors, one sentence each
  std::vector<std::string> check();
  /// For a store that another user may have written: throws EnvironmentError if it has more than
  /// whole tables. A view, a virtual table or a page that is its own child has rows without end,
  /// and a column that is computed can have any size.
  void require_plain_tables();
  /// Copies another store's record of this run: status, steps and attempts; the whole record if the
  /// run is unknown here. Its results do not become cache entries of this machine; they are fetched
  /// when needed.
  void take_run(const RunStore& from, const std::string& run);
  /// Returns every artifact digest that a run, a cache entry or a published name names, and those
  /// of the code of attempts.
  std::vector<core::Digest> referenced_artifacts();

  /// A small table for data of other rooms, such as digests of files by stat (see StatIndex) or
  /// compiled plans. Values are bytes.
  void put_blob(const std::string& kind, const std::string& key, std::string_view value);
  std::optional<std::string> get_blob(const std::string& kind, const std::string& key);
  void remove_blob(const std::string& kind, const std::string& key);
  std::vector<std::string> blob_keys(const std::string& kind);  ///< In alphabetical order.

 private:
  void hand_down(const std::string& run, bool keep_cache);
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::store
