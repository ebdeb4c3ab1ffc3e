/// @file
/// Records of runs and their steps.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/records.hpp"

namespace pipeline::store {

class Attempts;
class Database;
class DriverLocks;

class Runs {
 public:
  /// Keeps references to all arguments.
  Runs(Database& database, DriverLocks& drivers, Attempts& attempts)
      : database_(database), drivers_(drivers), attempts_(attempts) {}

  /// Records a run. If the run is running and this process drives it, the store holds its lock
  /// until finish(), or until the store is destroyed.
  void add(const RunRecord& run);
  /// Marks the run as running again, with a new driver, orchestrator and number of steps.
  void resume(const RunRecord& run);
  void finish(const RunRecord& run);  ///< Records status, end, duration, counts and same_as.
  /// Marks running runs with dead drivers as interrupted and returns them.
  /// @param known_dead a run whose driver is dead, whatever DriverLocks::liveness() returns
  std::vector<RunRecord> mark_dead(const std::string& known_dead = {});
  void set_tags(const std::string& run, const std::vector<std::string>& tags);
  void set_note(const std::string& run, const std::string& note);
  /// Returns runs, newest first.
  /// @param limit maximum number of runs; 0: all
  /// @param pipeline only runs of this pipeline; empty: all
  /// @param tag only runs that have this tag; empty: all
  std::vector<RunRecord> list(std::size_t limit = 0, const std::string& pipeline = {},
                              const std::string& tag = {});
  /// Returns the runs that are recorded as running.
  std::vector<RunRecord> running();
  /// Finds a run by identifier, unique prefix, `latest` or `latest-success`, the last two also of
  /// one pipeline: `digits@latest`. Returns nothing if there is none; throws InputError if the
  /// prefix is ambiguous.
  std::optional<RunRecord> find(const std::string& id_or_prefix);

  void put_step(const StepRecord& step);  ///< Inserts or replaces a step.
  /// Removes a step that has become its instances.
  /// @param steps the new number of the run's steps
  void expand_step(const std::string& run, const std::string& step, std::size_t steps);
  /// Removes a step that the run's pipeline no longer has, with its attempts and metrics.
  void remove_step(const std::string& run, const std::string& step);
  /// Returns the steps in the order of the file; those of the run `same_as` if it is set.
  /// @param only the name of the only step to return; empty: all
  std::vector<StepRecord> steps(const std::string& run, const std::string& only = {});

  /// The newest run that has tried a step, and how the step has ended there.
  struct LastTry {
    std::string run;
    StepStatus status;
  };
  /// Returns the last tries of a pipeline's steps, by their names. Steps that no run has tried are
  /// not among them.
  std::unordered_map<std::string, LastTry> last_tries(const std::string& pipeline);

 private:
  void put_in_order(const std::string& run, std::vector<StepRecord>& steps);

  Database& database_;
  DriverLocks& drivers_;
  Attempts& attempts_;
};

}  // namespace pipeline::store
