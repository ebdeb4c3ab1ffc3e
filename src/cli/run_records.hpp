/// @file
/// Recorded runs for the commands: the objects of `--output json`, and texts that the tables of
/// several commands share.
#pragma once

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "core/quantity.hpp"
#include "driver/drivers.hpp"
#include "engine/clock.hpp"
#include "remote_cache/run_outputs.hpp"

namespace pipeline::cli {

/// Returns the duration of a run, step or attempt: the recorded one, or the time since its start.
template <class Record>
std::string duration_of(const Record& record) {
  if (record.ended != WallTime{} || record.started == WallTime{})
    return core::format_duration(record.took);
  return core::format_duration(
      std::max(engine::wall_now() - record.started, std::chrono::milliseconds::zero()));
}

nlohmann::json run_json(const store::RunRecord& run);

/// Returns null if nothing was measured.
nlohmann::json usage_json(const core::Usage& usage);
/// Returns null if nothing was measured.
nlohmann::json phases_json(const core::Phases& phases);
/// Returns the metric with its last value.
nlohmann::json metric_json(const store::MetricRecord& metric);

/// Returns the step with its attempts and outputs.
nlohmann::json step_json(Context& context, store::RunStore& store,
                         const remote_cache::RunOutputs& outputs, const store::StepRecord& step);

nlohmann::json output_json(Context& context, const remote_cache::RunOutputs& outputs,
                           const std::string& step, const store::OutputRecord& output);

/// Returns access to the run's outputs, on this machine or in the remote store that the run used.
remote_cache::RunOutputs outputs_of(Context& context, store::RunStore& store,
                                    const store::RunRecord& run);

/// Returns the recorded status. For a run that is recorded as running, returns the state of its
/// driver: "running", "died" or "unknown". Reads `run` again if its driver has ended meanwhile.
std::string status_of(driver::Drivers& drivers, store::RunRecord& run);

}  // namespace pipeline::cli
