// Removes runs and parts of them.
#include <map>

#include "core/file.hpp"
#include "store/run_store.hpp"
#include "store/run_store_implementation.hpp"

namespace pipeline::store {

void RunStore::remove_step(const std::string& run, const std::string& step) {
  remove_attempts(run, step);
  self_->database.prepare("DELETE FROM steps WHERE run = ?1 AND name = ?2").bind(run, step).run();
}

void RunStore::remove_attempts(const std::string& run, const std::string& step) {
  self_->database.prepare("DELETE FROM attempts WHERE run = ?1 AND step = ?2")
      .bind(run, step)
      .run();
  self_->database.prepare("DELETE FROM metrics WHERE run = ?1 AND step = ?2").bind(run, step).run();
}

/// The metrics of a step that other runs have reused stay with the first of these, as whose result
/// it is reused from now on.
void RunStore::hand_down(const std::string& run, bool keep_cache) {
  struct Reuse {
    std::int64_t id;
    std::string step, run, key;
  };
  std::vector<Reuse> reuses;
  {
    auto row = self_->database.prepare(
        "SELECT id, name, run, key FROM steps WHERE reused_from = ?1 AND run <> ?1 ORDER BY id");
    row.bind(run);
    while (row.step()) reuses.push_back({row.integer(0), row.text(1), row.text(2), row.text(3)});
  }
  std::map<std::string, std::string> heirs;  // Of each step.
  for (const auto& reuse : reuses) {
    const auto [heir, is_first] = heirs.try_emplace(reuse.step, reuse.run);
    if (!is_first) {
      self_->database.prepare("UPDATE steps SET reused_from = ?2 WHERE id = ?1")
          .bind(reuse.id, heir->second)
          .run();
      continue;
    }
    self_->database.prepare("UPDATE OR IGNORE metrics SET run = ?3 WHERE run = ?1 AND step = ?2")
        .bind(run, reuse.step, reuse.run)
        .run();
    if (keep_cache)
      self_->database.prepare("UPDATE cache SET run = ?2 WHERE key = ?3 AND run = ?1")
          .bind(run, reuse.run, reuse.key)
          .run();
  }
}

bool RunStore::remove_run(const std::string& run, bool keep_cache) {
  bool is_driven = false;
  transaction([&] {
    const auto record = find_run(run);
    is_driven = record && record->id == run && record->status == RunStatus::running &&
                liveness(*record) != Liveness::dead;
    if (is_driven) return;
    // A run that reused all steps of this one has no rows of its own. The first such run inherits
    // the rows, and the others refer to it.
    std::string heir;
    {
      auto row =
          self_->database.prepare("SELECT id FROM runs WHERE same_as = ?1 ORDER BY rowid LIMIT 1");
      row.bind(run);
      if (row.step()) heir = row.text(0);
    }
    if (!heir.empty()) {
      const auto steps_of_heir = steps(heir);
      self_->database.prepare("UPDATE runs SET same_as = '' WHERE id = ?1").bind(heir).run();
      self_->database.prepare("UPDATE runs SET same_as = ?2 WHERE same_as = ?1")
          .bind(run, heir)
          .run();
      for (const auto& step : steps_of_heir) put_step(step);
      if (const auto declared = get_blob(declared_kind, run))
        put_blob(declared_kind, heir, *declared);
    }
    hand_down(run, keep_cache);
    if (!keep_cache) self_->database.prepare("DELETE FROM cache WHERE run = ?1").bind(run).run();
    for (const auto* kind :
         {invocation_kind, detached_kind, saved_kind, brought_kind, declared_kind})
      remove_blob(kind, run);
    self_->database.prepare("DELETE FROM runs WHERE id = ?1").bind(run).run();
  });
  if (is_driven) return false;
  core::remove_tree(log_file(run));
  core::remove_tree(kept_folder(run));
  core::remove_tree(failed_folder(run));
  core::remove_tree(self_->heartbeat(run));
  return true;
}

}  // namespace pipeline::store
