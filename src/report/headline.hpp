/// @file
/// The metrics that say how good a run is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::report {

/// A metric that the pipeline names in `headline`, else one of a step after which no other step
/// with metrics follows. For a step with a matrix, the metric of the best instance.
struct Headline {
  std::string step;  ///< Without the instance.
  std::string name;  ///< Name of the metric.
  double value = 0;
  std::string instance;  ///< The step or instance that reported the value.
  std::size_t instances = 1;
  double mean = 0;  ///< Mean of all instances.
};

/// A headline of an earlier run.
struct PastHeadline {
  std::string run;
  double value = 0;
};

struct HeadlineHistory {
  Headline now;
  std::optional<PastHeadline> last;  ///< The headline of the pipeline's newest earlier run.
  std::optional<PastHeadline> best;  ///< The best of the earlier runs.
};

/// Returns true for metrics such as `val_loss` and `rmse`.
bool is_better_lower(std::string_view metric);
/// Returns the steps, without their instances, after which no other step with metrics follows.
/// @param metrics the run's metrics
std::vector<std::string> headline_steps(store::RunStore& store, const store::RunRecord& run,
                                        const std::vector<store::MetricRecord>& metrics);
/// Returns the run's metrics without those of failed instances that other instances also reported.
/// @param step the only step to read; empty: all steps
std::vector<store::MetricRecord> results_of(store::RunStore& store, const store::RunRecord& run,
                                            const std::string& step = {});
/// Returns the run's headlines, at most model::max_headlines, in the order of the pipeline's
/// `headline`.
std::vector<Headline> headlines_of(store::RunStore& store, const store::RunRecord& run);
/// Returns the headlines with those of the pipeline's earlier runs, of which the newest hundred are
/// read, or thirty of a matrix.
std::vector<HeadlineHistory> headline_history(store::RunStore& store, const store::RunRecord& run);

}  // namespace pipeline::report
