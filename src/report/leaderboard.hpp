/// @file
/// A leaderboard: runs, or the steps of runs, with their parameters and metrics.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// Returns `rows`, `low` (the names of metrics of which less is better) and `parameters` (those of
/// each run, by its id). There is a row for each step of the runs that meets the condition and has
/// metrics, or is a failed instance of a step whose other instances have metrics. The members of a
/// row are those that templates/page/leaderboard.js reads: `run`, `step`, `b` (its base name,
/// without the instance), `s` (its status), `p` (its own parameters) and `m` (metrics). Values of
/// over 200 characters are left out of a run's parameters. Throws InputError for a wrong condition.
/// @param where as in `pipe runs --where`, about the step instead of the run; empty: all
nlohmann::json leaderboard_of_steps(store::RunStore& store,
                                    const std::vector<store::RunRecord>& runs,
                                    const std::string& where);

/// Returns such a document with a row for each run, without `parameters` and `step`: `b` is the
/// pipeline, and `m` has the latest value of each name.
/// @param max_rows maximum number of rows; the newest runs that meet the condition are kept
nlohmann::json leaderboard_of_runs(store::RunStore& store, const std::string& pipeline,
                                   const std::string& where, std::size_t max_rows);

}  // namespace pipeline::report
