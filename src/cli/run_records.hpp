/// @file
/// Recorded runs as the commands show them: the objects of `--output json`, and texts that the
/// tables of several commands share.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "detached/drivers.hpp"
#include "remote_cache/run_outputs.hpp"

namespace pipeline::cli {

nlohmann::json run_json(const store::RunRecord& run);

/// Each returns null if nothing was measured.
nlohmann::json usage_json(const core::Usage& usage);
nlohmann::json phases_json(const core::Phases& phases);
/// Returns the metric with its last value.
nlohmann::json metric_json(const store::MetricRecord& metric);

/// Returns the step with its attempts and outputs.
nlohmann::json step_json(Context& context, store::RunStore& runs,
                         const remote_cache::RunOutputs& outputs, const store::StepRecord& step);

nlohmann::json output_json(Context& context, const remote_cache::RunOutputs& outputs,
                           const std::string& step, const store::OutputRecord& output);

/// Returns where the run's outputs are: on this machine, or in the artifact store that the run was
/// asked to use.
remote_cache::RunOutputs outputs_of(Context& context, store::RunStore& runs,
                                    const store::RunRecord& run);

/// Returns the recorded status. For a run that is recorded as running, returns whether its driver
/// lives: "running", "died" or "unknown".
std::string status_of(detached::Drivers& drivers, store::RunRecord& run);

}  // namespace pipeline::cli
