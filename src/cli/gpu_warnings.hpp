/// @file
/// Warnings about steps with GPUs, and about where steps may run, before anything is built.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::cli {

class Session;
class Progress;

/// Takes a warning as a text of some lines, without the last one's end.
using Say = std::function<void(std::string_view)>;

/// Throws InputError if there are errors among the diagnostics; else tells the warnings, each with
/// its place in the file, and returns them.
std::vector<core::Diagnostic> check_gpus(const PipelineSpec& pipeline,
                                         std::vector<core::Diagnostic> diagnostics, const Say& say);

/// gpu::check_steps() and check_gpus() for a session: looks at this machine and at the engine, if
/// any step needs it.
std::vector<core::Diagnostic> check_gpus(Session& session, const Say& say);

/// check_gpus(), its warnings shown, or with JSON printed as events.
void report_gpu_warnings(Session& session, Progress& progress);

/// `[{code, message, line, suggestion}]`
nlohmann::json warnings_json(const std::vector<core::Diagnostic>& warnings);

}  // namespace pipeline::cli
