/// @file
/// Answers requests for the pages and their data, which are read from the state folder: runs, a
/// run, its logs, artifacts. Only the answers to questions are written.
#pragma once

#include <string>

#include "report/run_table.hpp"
#include "serve/request.hpp"
#include "serve/response.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::serve {

/// The page of all views, with its style, script and icon.
struct Assets {
  std::string page, style, script, icon;
};

/// Reads the stores, which must outlive this object. Calls of this object and of its feeds must
/// not overlap.
class Api {
 public:
  /// @param takes_answers whether questions can be answered; false if the runs are copies of those
  /// in a remote store
  Api(store::RunStore& store, const store::ArtifactStore& artifacts, Assets assets,
      bool takes_answers);

  /// Returns the response. Throws InputError if the requested object does not exist or a parameter
  /// is wrong.
  Response respond(const PageRequest& request);

 private:
  Response post_answer(const PageRequest& request);
  Response runs(const PageRequest& request);
  Response run(const PageRequest& request);
  Response step(const PageRequest& request);
  Response compare(const PageRequest& request);
  Response curves(const PageRequest& request);
  Response leaderboard(const PageRequest& request);
  Response lineage(const PageRequest& request);
  Response log(const PageRequest& request);
  Response whole_log(const PageRequest& request);
  Response events(const PageRequest& request);
  Response artifact(const PageRequest& request);
  Response picture(const PageRequest& request);

  /// Returns the run that `run` names.
  store::RunRecord find_run(const PageRequest& request);
  /// Returns the runs of all values of `run`.
  std::vector<store::RunRecord> find_runs(const PageRequest& request);
  /// Returns the attempt that `run`, `step` and `attempt` name; without a number, the last attempt.
  store::AttemptRecord find_attempt(const PageRequest& request);

  store::RunStore& store_;
  report::RunTable table_;
  const store::ArtifactStore& artifacts_;
  const Assets assets_;
  const bool takes_answers_;
};

}  // namespace pipeline::serve
