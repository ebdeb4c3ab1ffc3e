/// @file
/// Answers requests for the pages and their data, which are read from the state folder: runs, a
/// run, its logs, artifacts. Only the answers to questions are written.
#pragma once

#include <string>

#include "report/run_table.hpp"
#include "serve/answer.hpp"
#include "serve/request.hpp"
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

  /// Returns the answer. Throws InputError if the requested object does not exist or a parameter is
  /// wrong.
  Answer answer(const PageRequest& request);

 private:
  Answer post_answer(const PageRequest& request);
  Answer runs(const PageRequest& request);
  Answer run(const PageRequest& request);
  Answer step(const PageRequest& request);
  Answer compare(const PageRequest& request);
  Answer curves(const PageRequest& request);
  Answer leaderboard(const PageRequest& request);
  Answer lineage(const PageRequest& request);
  Answer log(const PageRequest& request);
  Answer whole_log(const PageRequest& request);
  Answer events(const PageRequest& request);
  Answer artifact(const PageRequest& request);
  Answer picture(const PageRequest& request);

  store::RunRecord find(const PageRequest& request);
  std::vector<store::RunRecord> find_all(const PageRequest& request);
  /// Returns the attempt that `run`, `step` and `attempt` name; without a number, the last attempt.
  store::AttemptRecord find_attempt(const PageRequest& request);

  store::RunStore& store_;
  report::RunTable table_;
  const store::ArtifactStore& artifacts_;
  const Assets assets_;
  const bool takes_answers_;
};

}  // namespace pipeline::serve
