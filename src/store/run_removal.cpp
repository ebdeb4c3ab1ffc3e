#include "store/run_removal.hpp"

#include <map>
#include <vector>

#include "store/database.hpp"
#include "store/key_values.hpp"
#include "store/runs.hpp"

namespace pipeline::store {

void RunRemoval::remove(const std::string& run, bool keep_cache) {
  move_rows_to_heir(run);
  reassign_results(run, keep_cache);
  if (!keep_cache) database_.prepare("DELETE FROM cache WHERE run = ?1").bind(run).run();
  for (const auto* kind : {invocation_kind, detached_kind, saved_kind, downloaded_logs_kind,
                           declared_kind, questions_kind, versions_kind})
    key_values_.remove(kind, run);
  database_.prepare("DELETE FROM runs WHERE id = ?1").bind(run).run();
}

/// A run that reused all steps of this one has no rows of its own. The first such run inherits the
/// rows, and the others refer to it.
void RunRemoval::move_rows_to_heir(const std::string& run) {
  std::string heir;
  {
    auto row = database_.prepare("SELECT id FROM runs WHERE same_as = ?1 ORDER BY rowid LIMIT 1");
    row.bind(run);
    if (!row.step()) return;
    heir = row.text(0);
  }
  const auto steps = runs_.steps(heir);
  database_.prepare("UPDATE runs SET same_as = '' WHERE id = ?1").bind(heir).run();
  database_.prepare("UPDATE runs SET same_as = ?2 WHERE same_as = ?1").bind(run, heir).run();
  for (const auto& step : steps) runs_.put_step(step);
  if (const auto declared = key_values_.find(declared_kind, run))
    key_values_.put(declared_kind, heir, *declared);
}

/// Moves the metrics of each step that other runs have reused to the first of these runs, which the
/// others name as the run that made the result from now on.
void RunRemoval::reassign_results(const std::string& run, bool keep_cache) {
  struct Reuse {
    std::int64_t id;
    std::string step, run, key;
  };
  std::vector<Reuse> reuses;
  {
    auto row = database_.prepare(
        "SELECT id, name, run, key FROM steps WHERE reused_from = ?1 AND run <> ?1 ORDER BY id");
    row.bind(run);
    while (row.step()) reuses.push_back({row.integer(0), row.text(1), row.text(2), row.text(3)});
  }
  std::map<std::string, std::string> heirs;  // Keyed by step.
  for (const auto& reuse : reuses) {
    const auto [heir, is_first] = heirs.try_emplace(reuse.step, reuse.run);
    if (!is_first) {
      database_.prepare("UPDATE steps SET reused_from = ?2 WHERE id = ?1")
          .bind(reuse.id, heir->second)
          .run();
      continue;
    }
    database_.prepare("UPDATE OR IGNORE metrics SET run = ?3 WHERE run = ?1 AND step = ?2")
        .bind(run, reuse.step, reuse.run)
        .run();
    if (keep_cache)
      database_.prepare("UPDATE cache SET run = ?2 WHERE key = ?3 AND run = ?1")
          .bind(run, reuse.run, reuse.key)
          .run();
  }
}

}  // namespace pipeline::store
