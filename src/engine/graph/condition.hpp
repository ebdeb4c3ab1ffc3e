/// @file
/// Evaluates `when` of a step from parameters and the small JSON outputs of earlier steps.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <pipeline/spec.hpp>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// The result of a condition.
struct ConditionValue {
  std::optional<bool> value;  ///< Unset if it depends on outputs that do not exist yet.
  /// If not true: the reason, such as `when is false: evaluate.metrics.accuracy is 0.85
  /// (${evaluate.metrics.accuracy} > 0.9)`.
  std::string reason;
  /// Set if an output has no such value, or a value of the wrong type.
  std::string error;
};

/// Returns an existing output; null if it does not exist yet.
using FindOutput = std::function<const store::OutputRecord*(const SourceSpec&)>;

/// Evaluates the condition as far as the outputs exist.
/// @param key `when` or `until`, for the reason
ConditionValue evaluate(const Condition& condition, const FindOutput& find_output,
                        store::ArtifactStore& artifacts, const std::string& key = "when");

/// The end of a step. unknown: the step has not ended. tolerated: it failed and has
/// `allow_failure`.
enum class Outcome { unknown, made, failed, skipped, tolerated };

/// The steps before a step.
struct Predecessors {
  std::function<Outcome(const std::string& step)> outcome_of;
  /// The outcomes together: `failed` if one has failed, else `unknown` if one is not known, else
  /// `made`.
  Outcome all;
  FindOutput find_output;
};

/// Returns why the step cannot run: a step that it needs has failed or was skipped. Returns an
/// empty text if there is no such step.
std::string lost_need(const StepSpec& step, const Predecessors& before);

/// Decides whether a step runs: by `run_on`, by whether the steps that it needs have made their
/// outputs, and by `when`. `error` is also set if an input has fewer outputs than its `at_least`.
ConditionValue decide(const StepSpec& step, const Predecessors& before,
                      store::ArtifactStore& artifacts);

/// Returns true for a step that may be skipped even if no earlier step was.
inline bool is_conditional(const StepSpec& step) {
  return step.when || step.run_on != RunOn::success;
}

/// Returns true if the step's parameters alone rule it out.
bool is_ruled_out(const StepSpec& step, store::ArtifactStore& artifacts);

}  // namespace pipeline::engine
