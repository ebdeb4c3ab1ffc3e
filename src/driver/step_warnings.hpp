/// @file
/// Warnings and errors about steps before anything is built: GPUs, placement, volumes, users,
/// scripts, sizes.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::driver {

class RunObserver;
class Session;

/// Receives a warning as a text of some lines, without the last line end.
using Say = std::function<void(std::string_view)>;

/// Throws InputError if there are errors among the diagnostics; otherwise reports the warnings,
/// each with its position in the file, and returns them.
std::vector<core::Diagnostic> report_warnings(const PipelineSpec& pipeline,
                                              std::vector<core::Diagnostic> diagnostics,
                                              const Say& say);

/// Checks the selected steps of a session. Reports the findings as report_warnings() does. Queries
/// this machine and the engine if a step needs it.
std::vector<core::Diagnostic> check_steps(Session& session, const Say& say);

/// Reports, as report_warnings() does, for which of the steps this machine lacks GPUs. A run ends
/// with an error if one of these steps has to run.
std::vector<core::Diagnostic> check_missing_gpus(Session& session,
                                                 const std::vector<const StepSpec*>& steps,
                                                 const Say& say);

/// Runs check_steps() and passes its warnings on.
void report_step_warnings(Session& session, RunObserver& observer);

/// Returns a list of diagnostic_json() objects, each with its `file`, too.
nlohmann::json warnings_json(const std::vector<core::Diagnostic>& warnings,
                             const PipelineSpec& pipeline);

}  // namespace pipeline::driver
