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

/// When a step runs, by the end of the steps before it.
enum class RunOn {
  success,  ///< All of them have succeeded. The default.
  failure,  ///< At least one of them has failed: a notification.
  always,   ///< All of them have ended, in any way: a clean-up.
};

/// The body of a notification: an object of pipe's own, or a text as Slack and Teams take it.
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
