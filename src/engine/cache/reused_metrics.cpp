#include "engine/cache/reused_metrics.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/log.hpp"
#include "engine/attempt/metric_file.hpp"
#include "engine/attempt/metric_log.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {

void note_reused_metrics(store::RunStore& store, const store::ArtifactStore& artifacts,
                         const std::string& run, const StepSpec& step,
                         const store::CacheEntry& entry) {
  if (std::ranges::none_of(step.outputs, &OutputSpec::metrics)) return;
  if (!store.metrics().list(run, step.name).empty()) return;
  const auto now = wall_now();
  constexpr unsigned attempt = 1;  // Stands for the attempt that a reused step does not have here.
  MetricLog log(store, run, step.name, attempt);
  for (const auto& output : step.outputs) {
    const auto made = std::ranges::find(entry.outputs, output.name, &store::OutputRecord::name);
    if (!output.metrics || made == entry.outputs.end()) continue;
    try {
      read_metric_file(artifacts.path(made->digest), made->file_name,
                       [&](const std::string& name, store::MetricPoint point) {
                         point.time = now;
                         log.add(name, point);
                       });
    } catch (const core::ContentError& error) {
      core::log::warn(step.name + "." + output.name + ": " + error.what());
    }
  }
  log.flush();
}

}  // namespace pipeline::engine
