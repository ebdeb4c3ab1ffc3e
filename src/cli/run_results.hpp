/// @file
/// What a run has made, and its end as an object that programs and `pipe attach` read.
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/context.hpp"
#include "cli/session.hpp"
#include "cli/summary.hpp"

namespace pipeline::cli {

/// Returns the run's outputs, made or reused: all of them or, in a large pipeline, those that no
/// step takes. Those of repeated steps are those of the last round.
std::vector<ShownResult> results_of(Session& session);

/// Returns the event `summary`.
nlohmann::json summary_json(const Summary& summary, core::ExitCode exit_code);

/// Reads the event `summary` into a summary. Paths are those of this machine; results that are not
/// on it are left out.
/// @return the exit code; nothing if the object is no summary
std::optional<core::ExitCode> read_summary(const nlohmann::json& object, Context& context,
                                           store::RunStore& store, Summary& summary);

/// Prints the summary, as text or as the event.
void show_summary(const Context& context, const store::RunStore& store, Summary summary,
                  core::ExitCode exit_code);

}  // namespace pipeline::cli
