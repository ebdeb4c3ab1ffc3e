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

/// Reads the store when a value is first asked for.
class RunValues {
 public:
  /// Keeps a reference to the store.
  RunValues(store::RunStore& store, store::RunRecord run) : store_(store), run_(std::move(run)) {}

  const store::RunRecord& run() const { return run_; }
  /// Takes a newer record of the same run, whose steps have not changed.
  void take(store::RunRecord run) { run_ = std::move(run); }
  /// Returns the value; null if the run has none. Throws InputError for a name of another group.
  nlohmann::json value(const std::string& name);

  /// The parameters: the run's, and those of steps as far as all steps that have one agree.
  const std::map<std::string, nlohmann::json>& parameters();
  /// The last values of the metrics: `accuracy`, and where several steps report one of that name,
  /// the latest; also `STEP.accuracy`.
  const std::map<std::string, nlohmann::json>& metrics();
  /// CPU seconds, the largest memory of an attempt in bytes, and the bytes read and written.
  const std::map<std::string, nlohmann::json>& usage();
  /// Id, pipeline, status, ...
  std::map<std::string, nlohmann::json> properties() const;

 private:
  const std::vector<store::StepRecord>& steps();

  store::RunStore& store_;
  store::RunRecord run_;
  std::vector<store::StepRecord> steps_;
  bool has_steps_ = false, has_parameters_ = false, has_metrics_ = false, has_usage_ = false;
  std::map<std::string, nlohmann::json> parameters_, metrics_, usage_;
};

/// Returns the run's tags, separated by commas.
std::string tags_of(const store::RunRecord& run);
/// Returns the value as a table shows it.
std::string shown_value(const nlohmann::json& value);
/// The same of a run's value by its name: `usage.memory` and the like are bytes.
std::string shown_value_of(const std::string& name, const nlohmann::json& value);
/// Returns true if `a` is before `b`: numbers before texts, nothing last.
bool is_before(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace pipeline::report
