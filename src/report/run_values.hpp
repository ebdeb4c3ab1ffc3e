/// @file
/// The values of a run by the names that users write: `params.c`, `metrics.accuracy`,
/// `run.status`, `usage.cpu`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// The values of a run or of a step of it, read from the store on first use.
class RunValues {
 public:
  /// The store must outlive this object.
  RunValues(store::RunStore& store, store::RunRecord run) : store_(store), run_(std::move(run)) {}

  /// The values of one step of the run, by the same names.
  /// @param run_parameters those of the run, which must outlive this object: they can be large, and
  /// are shared by all its steps
  RunValues(store::RunStore& store, store::RunRecord run, const nlohmann::json& run_parameters,
            const store::StepRecord& step, std::vector<store::MetricRecord> metrics);

  const store::RunRecord& run() const { return run_; }
  /// Takes a newer record of the same run, whose steps have not changed.
  void take(store::RunRecord run) { run_ = std::move(run); }
  /// Returns the value; null if the run lacks it. Throws InputError for an unknown name.
  nlohmann::json value(const std::string& name);

  /// Returns the run's parameters, and a parameter of steps if all steps that have it agree. Of a
  /// step, returns its own only.
  const std::map<std::string, nlohmann::json>& parameters();
  /// Returns the last values of metrics: `accuracy` (the latest of all steps), `STEP.accuracy`.
  const std::map<std::string, nlohmann::json>& metrics();
  /// Returns CPU seconds, the maximum memory of an attempt, and the bytes read and written.
  const std::map<std::string, nlohmann::json>& usage();
  /// Returns id, pipeline, status, ...
  std::map<std::string, nlohmann::json> properties() const;

 private:
  const std::vector<store::StepRecord>& steps();
  std::vector<store::MetricRecord> listed_metrics();

  store::RunStore& store_;
  store::RunRecord run_;
  std::vector<store::StepRecord> steps_;
  std::vector<store::MetricRecord> step_metrics_;
  const nlohmann::json* run_parameters_ = nullptr;  ///< Of a step, which `steps_` has alone.
  bool has_steps_ = false, has_parameters_ = false, has_metrics_ = false, has_usage_ = false;
  std::map<std::string, nlohmann::json> parameters_, metrics_, usage_;
};

/// Returns the run's tags, separated by commas.
std::string tags_of(const store::RunRecord& run);
/// Returns the value as a table shows it.
std::string shown_value(const nlohmann::json& value);
/// Returns a run's value as a table shows it, by name: `usage.memory` and the like are bytes.
std::string shown_value_of(const std::string& name, const nlohmann::json& value);
/// Returns true if `a` sorts before `b`: numbers before texts, null last.
bool is_before(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace pipeline::report
