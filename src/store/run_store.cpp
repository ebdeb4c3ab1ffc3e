#include "store/run_store.hpp"

#include <set>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/database.hpp"
#include "store/record_texts.hpp"
#include "store/run_removal.hpp"
#include "store/run_schema.hpp"

namespace pipeline::store {

struct RunStore::Implementation {
  explicit Implementation(const std::filesystem::path& folder)
      : paths((core::make_folders(folder), folder)) {}

  StatePaths paths;
  DriverLocks drivers{paths};
  Database database{paths.database(), run_schema::application_id, run_schema::version,
                    run_schema::tables, run_schema::migrations};
  Attempts attempts{database};
  Runs runs{database, drivers, attempts};
  Metrics metrics{database};
  CacheEntries cache{database};
  KeyValues key_values{database};
  Published published{database, key_values};
  Lineage lineage{database, runs, cache, key_values};
};

RunStore::RunStore(const std::filesystem::path& folder)
    : self_(std::make_unique<Implementation>(folder)) {}
RunStore::~RunStore() = default;
RunStore::RunStore(RunStore&&) noexcept = default;

Runs& RunStore::runs() { return self_->runs; }
Attempts& RunStore::attempts() { return self_->attempts; }
Metrics& RunStore::metrics() { return self_->metrics; }
CacheEntries& RunStore::cache() { return self_->cache; }
Lineage& RunStore::lineage() { return self_->lineage; }
Published& RunStore::published() { return self_->published; }
KeyValues& RunStore::key_values() { return self_->key_values; }
const DriverLocks& RunStore::drivers() const { return self_->drivers; }
const StatePaths& RunStore::paths() const { return self_->paths; }

void RunStore::share() {
  self_->database.execute("PRAGMA busy_timeout = 3000");
  try {
    self_->database.execute("PRAGMA journal_mode = DELETE");
  } catch (const core::EnvironmentError& error) {
    throw core::EnvironmentError(
        "the run store in " + folder().string() +
            " cannot be shared with other machines while another process has it open: " +
            error.what(),
        {"try again when no other `pipe` uses this state folder"});
  }
  self_->database.execute("PRAGMA busy_timeout = 30000");
}

bool RunStore::is_read_only() const { return self_->database.is_read_only(); }
void RunStore::require_writable() const { self_->database.require_writable(); }
void RunStore::forbid_writes() { self_->database.execute("PRAGMA query_only = ON"); }

std::int64_t RunStore::data_version() {
  auto row = self_->database.prepare("PRAGMA data_version");
  return row.step() ? row.integer(0) : 0;
}

void RunStore::before_commit(std::function<void()> check) {
  self_->database.before_commit(std::move(check));
}

void RunStore::transaction(const std::function<void()>& work) { self_->database.transaction(work); }

bool RunStore::remove_run(const std::string& run, bool keep_cache) {
  bool is_driven = false;
  transaction([&] {
    const auto record = runs().find(run);
    is_driven = record && record->id == run && record->status == RunStatus::running &&
                drivers().liveness(*record) != Liveness::dead;
    if (!is_driven) RunRemoval(self_->database, runs(), key_values()).remove(run, keep_cache);
  });
  if (is_driven) return false;
  for (const auto& path : {paths().log_file(run), paths().detached_folder(run),
                           paths().failed_folder(run), paths().heartbeat_file(run)})
    paths().remove(path);
  return true;
}

std::vector<std::string> RunStore::check() {
  std::vector<std::string> errors;
  try {
    auto row = self_->database.prepare("PRAGMA integrity_check(100)");
    while (row.step())
      if (auto text = row.text(0); text != "ok") errors.push_back(std::move(text));
    for (const auto& run : runs().list()) runs().steps(run.id);  // Throws for a damaged record.
  } catch (const core::EnvironmentError& error) {
    errors.emplace_back(error.what());
  }
  return errors;
}

void RunStore::import_run(const RunStore& from, const std::string& run) {
  const auto file = from.paths().database().string();
  self_->database.prepare("ATTACH ?1 AS other").bind(file).run();
  const auto take = [&](const char* sql) { self_->database.prepare(sql).bind(run).run(); };
  std::exception_ptr failed;
  try {
    transaction([&] {
      take("INSERT INTO runs (" RUN_COLUMNS ") SELECT " RUN_COLUMNS
           " FROM other.runs WHERE id = ?1 ON CONFLICT (id) DO UPDATE SET orchestrator = "
           "excluded.orchestrator, status = excluded.status,"
           " ended = excluded.ended, took = excluded.took, same_as = excluded.same_as, steps = "
           "excluded.steps, cached = excluded.cached, failed = "
           "excluded.failed");
      // The other store no longer has steps that have become their instances.
      take(
          "DELETE FROM steps WHERE run = ?1 AND name NOT IN "
          "(SELECT name FROM other.steps WHERE run = ?1)");
      take("INSERT INTO steps (" STEP_COLUMNS ") SELECT " STEP_COLUMNS
           " FROM other.steps WHERE run = ?1 ORDER BY id ON CONFLICT (run, name) DO UPDATE "
           "SET " STEP_CHANGES);
      take("INSERT OR REPLACE INTO attempts (" ATTEMPT_COLUMNS ") SELECT " ATTEMPT_COLUMNS
           " FROM other.attempts WHERE run = ?1");
      take("INSERT OR REPLACE INTO tasks (" TASK_COLUMNS ") SELECT " TASK_COLUMNS
           " FROM other.tasks WHERE run = ?1");
      take("INSERT OR REPLACE INTO metrics SELECT * FROM other.metrics WHERE run = ?1");
      take(
          "INSERT OR IGNORE INTO blobs (kind, key, value) SELECT kind, key, value FROM other.blobs "
          "WHERE key = ?1 AND kind IN ('invocation', 'detached', 'saved', 'declared', 'versions')");
    });
  } catch (...) {
    failed = std::current_exception();
  }
  self_->database.prepare("DETACH other").run();
  if (failed) std::rethrow_exception(failed);
}

std::vector<core::Digest> RunStore::referenced_artifacts(TempArtifacts temp_artifacts) {
  std::set<core::Digest> digests;
  auto row = self_->database.prepare(
      "SELECT outputs FROM steps WHERE outputs <> '[]' UNION SELECT outputs FROM cache WHERE "
      "outputs <> '[]'");
  while (row.step())
    for (const auto& output : read_outputs(row.text(0)))
      if (temp_artifacts == TempArtifacts::included || !output.temp) digests.insert(output.digest);
  auto code = self_->database.prepare(
      "SELECT DISTINCT json_extract(usage, '$.code') AS code FROM attempts WHERE "
      "json_valid(usage) AND length(code) = 64 AND code NOT GLOB '*[^0-9a-f]*'");
  while (code.step()) digests.insert(core::Digest::from_hex(code.text(0)));
  for (const auto& name : published().names())
    for (const auto& version : published().find(name).versions)
      digests.insert(version.output.digest);
  return {digests.begin(), digests.end()};
}

}  // namespace pipeline::store
