/// @file
/// Options of a pipeline or step besides its settings: environment variables, secrets, and the
/// reaction to a failed step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pipeline {

enum class RunStatus;

/// Environment variables of a step, by name. A variable without a value is passed on from the
/// invoking user's environment.
using StepEnvironment = std::map<std::string, std::optional<std::string>>;

/// An environment variable whose value comes from the invoking user and is passed to the step,
/// masked in logs and never stored.
struct SecretSpec {
  std::string name;
  /// Absolute path of the file that holds the value. Default: the user's environment variable
  /// `name`.
  std::optional<std::string> file = {};
};

/// Effect of a failed step on the other steps. The names are ZenML's.
enum class ExecutionMode {
  fail_fast,            ///< Running steps are stopped; no further step starts.
  stop_on_failure,      ///< Running steps finish; no further step starts.
  continue_on_failure,  ///< Steps that do not depend on the failed one still run. The default.
};

/// Whether a step runs, depending on how the steps before it have ended.
enum class RunOn {
  success,  ///< All steps before it have succeeded. The default.
  failure,  ///< At least one step before it has failed, as for a notification.
  always,   ///< All steps before it have ended, failed ones included, as for a clean-up.
};

/// The body of a notification: a JSON object with members that docs/runs.md names, or a text in the
/// form that Slack or Teams takes.
enum class NotifyFormat { json, slack, teams };

/// A webhook that is called when a run has ended. Exactly one of `url`, `url_variable` and
/// `url_file` is set; the address is a secret.
struct NotifySpec {
  std::string url = {};           ///< `https://...`.
  std::string url_variable = {};  ///< Environment variable that holds the address.
  std::string url_file = {};      ///< Path of the file that holds the address.
  /// The ends of a run to report: failed, succeeded, interrupted. Empty: all.
  std::vector<RunStatus> on = {};
  NotifyFormat format = NotifyFormat::json;
};

}  // namespace pipeline
