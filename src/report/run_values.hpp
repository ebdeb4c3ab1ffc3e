/// @file
/// Values of a run, by the names that users write: `params.c`, `metrics.accuracy`, `run.status`,
/// `usage.cpu`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// The values of a run, or of one step of a run, read from the store on first use.
class RunValues {
 public:
  /// The store must outlive this object.
  RunValues(store::RunStore& store, store::RunRecord run) : store_(store), run_(std::move(run)) {}

  /// Has the values of one step of the run, by the same names.
  /// @param run_parameters the parameters of the run, which must outlive this object: they can be
  /// large, and all steps of the run share them
  /// @param metrics the step's metrics
  RunValues(store::RunStore& store, store::RunRecord run, const nlohmann::json& run_parameters,
            const store::StepRecord& step, std::vector<store::MetricRecord> metrics);

  const store::RunRecord& run() const { return run_; }
  /// Replaces the record by a newer one of the same run, whose steps have not changed.
  void replace_record(store::RunRecord run) { run_ = std::move(run); }
  /// Returns the value; null if the run lacks it. Throws InputError for an unknown name.
  nlohmann::json value(const std::string& name);

  /// Returns the parameters of the run, and those parameters of steps on whose value all steps that
  /// have them agree. For a step, returns the step's own parameters only.
  const std::map<std::string, nlohmann::json>& parameters();
  /// Returns the last value of each metric, as `STEP.accuracy` for each step, and as `accuracy` for
  /// the step that reported it last.
  const std::map<std::string, nlohmann::json>& metrics();
  /// Returns CPU seconds, the maximum memory of an attempt, and the bytes read and written.
  const std::map<std::string, nlohmann::json>& usage();
  /// Returns id, pipeline, status, ...
  std::map<std::string, nlohmann::json> properties() const;

 private:
  bool is_of_step() const { return run_parameters_ != nullptr; }
  const std::vector<store::StepRecord>& steps();

  store::RunStore& store_;
  store::RunRecord run_;
  std::vector<store::MetricRecord> step_metrics_;   ///< Empty for a run.
  const nlohmann::json* run_parameters_ = nullptr;  ///< Null for a run.
  /// Unset until the first use. For a step, the list has that step only.
  std::optional<std::vector<store::StepRecord>> steps_;
  std::optional<std::map<std::string, nlohmann::json>> parameters_, metrics_, usage_;
};

/// Returns the declarations of the run's steps in its pipeline (store::declared_kind), keyed by
/// step; for a run that reused everything, those of the run that it repeats.
nlohmann::json declared_steps(store::RunStore& store, const store::RunRecord& run);
/// Returns the run's status. For a run that is recorded as running, returns the state of its
/// driver: `running`, `died`, or `unknown` if this machine cannot tell.
std::string live_status(const store::RunStore& store, const store::RunRecord& run);
/// Returns the run's tags, separated by commas.
std::string tags_of(const store::RunRecord& run);
/// Returns the value as a table shows it.
std::string shown_value(const nlohmann::json& value);
/// Returns a run's value as a table shows it, by name: `usage.memory` and the like are bytes.
std::string shown_value_of(const std::string& name, const nlohmann::json& value);
/// Returns true if `a` sorts before `b`: numbers before texts, null last.
bool is_before(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace pipeline::report
