/// @file
/// What a pipeline or step may say besides its settings: variables, secrets, and what becomes of
/// the other steps when one fails.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace pipeline {

/// Variables of a step: a value, or none for the caller's own value of that name.
using StepEnvironment = std::map<std::string, std::optional<std::string>>;

/// A variable whose value comes from the caller and reaches the step; masked in logs, stored
/// nowhere.
struct SecretSpec {
  std::string name;
  std::optional<std::string>
      file;  ///< Absolute path of the file that holds it; else the caller's variable of that name.
};

/// What happens to the other steps when one has failed (ZenML's names).
enum class ExecutionMode {
  fail_fast,            ///< Running steps are stopped, no further one starts.
  stop_on_failure,      ///< Running steps end, no further one starts.
  continue_on_failure,  ///< What does not depend on the failed step goes on. The default.
};

}  // namespace pipeline
