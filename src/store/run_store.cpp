#include "store/run_store.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "store/published.hpp"
#include "store/record_texts.hpp"
#include "store/run_schema.hpp"
#include "store/run_store_implementation.hpp"

namespace pipeline::store {
namespace {

std::int64_t to_integer(WallTime time) { return time.time_since_epoch().count(); }
WallTime to_time(std::int64_t milliseconds) {
  return WallTime(std::chrono::milliseconds(milliseconds));
}

RunRecord read_run(const Statement& row) {
  RunRecord run{.id = row.text(0),
                .pipeline = row.text(1),
                .orchestrator = row.text(2),
                .file = row.text(3),
                .parameters = row.text(4),
                .git_commit = row.text(5)};
  run.git_dirty = row.integer(6) != 0;
  run.status = static_cast<RunStatus>(row.integer(7));
  run.started = to_time(row.integer(8));
  run.ended = to_time(row.integer(9));
  run.took = std::chrono::milliseconds(row.integer(10));
  run.driver = read_driver(row.integer(11), row.text(12));
  run.same_as = row.text(13);
  run.steps = static_cast<std::size_t>(row.integer(14));
  run.cached = static_cast<std::size_t>(row.integer(15));
  run.failed = static_cast<std::size_t>(row.integer(16));
  const auto tags = core::parse_json(row.text(17));
  if (tags.is_array())
    for (const auto& tag : tags)
      if (tag.is_string()) run.tags.push_back(tag);
  run.note = row.text(18);
  return run;
}

/// @param row has ATTEMPT_COLUMNS
AttemptRecord read_attempt(const Statement& row) {
  AttemptRecord attempt{
      .run = row.text(0), .step = row.text(1), .number = static_cast<unsigned>(row.integer(2))};
  attempt.started = to_time(row.integer(3));
  attempt.ended = to_time(row.integer(4));
  attempt.took = std::chrono::milliseconds(row.integer(5));
  if (!row.is_null(6)) attempt.exit_code = static_cast<int>(row.integer(6));
  attempt.failure_kind = row.text(7);
  attempt.message = row.text(8);
  attempt.log = row.text(9);
  attempt.gpus = read_gpus(row.text(10));
  read_measured(row.text(11), attempt);
  return attempt;
}

}  // namespace

RunStore::RunStore(const std::filesystem::path& folder)
    : self_((core::make_folders(folder),
             new Implementation{folder, is_local_file_system(folder),
                                Database(folder / "pipe.db", application_id, schema_version, schema,
                                         migrations)})) {}
RunStore::~RunStore() = default;
RunStore::RunStore(RunStore&&) noexcept = default;

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

const std::filesystem::path& RunStore::folder() const { return self_->folder; }
std::string log_name(const std::string& run, const std::string& step, unsigned attempt) {
  return run + "/" + step + "." + std::to_string(attempt) + ".log";
}

std::filesystem::path RunStore::log_file(const std::string& name) const {
  return self_->folder / "logs" / below(name);
}
std::filesystem::path RunStore::failed_folder(const std::string& run) const {
  return self_->folder / "failed" / below(run);
}
std::filesystem::path RunStore::kept_folder(const std::string& run) const {
  return self_->folder / "detached" / below(run);
}

bool RunStore::is_read_only() const { return self_->database.is_read_only(); }
void RunStore::require_writable() const { self_->database.require_writable(); }
void RunStore::forbid_writes() { self_->database.execute("PRAGMA query_only = ON"); }

std::int64_t RunStore::version() {
  auto row = self_->database.prepare("PRAGMA data_version");
  return row.step() ? row.integer(0) : 0;
}

void RunStore::before_commit(std::function<void()> check) {
  self_->database.before_commit(std::move(check));
}

void RunStore::transaction(const std::function<void()>& work) {
  if (self_->in_transaction) return work();
  self_->database.prepare("BEGIN IMMEDIATE").run();
  self_->in_transaction = true;
  try {
    work();
    self_->database.prepare("COMMIT").run();
    self_->in_transaction = false;
  } catch (...) {
    self_->in_transaction = false;
    try {
      self_->database.execute("ROLLBACK");
      // SQLite has rolled back by itself, as it does on a full disk.
    } catch (const core::EnvironmentError&) {
    }
    throw;
  }
}

void RunStore::add_run(const RunRecord& run) {
  const auto driver = self_->drive(run);
  self_->database
      .prepare("INSERT INTO runs (" RUN_COLUMNS
               ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
               "?17, ?18, ?19)")
      .bind(run.id, run.pipeline, run.orchestrator, run.file, run.parameters, run.git_commit,
            run.git_dirty, static_cast<int>(run.status), to_integer(run.started),
            to_integer(run.ended), run.took.count(), driver.process.pid, write_driver(driver),
            run.same_as, run.steps, run.cached, run.failed, nlohmann::json(run.tags).dump(),
            run.note)
      .run();
}

void RunStore::resume_run(const RunRecord& run) {
  auto resumed = run;
  resumed.status = RunStatus::running;
  const auto driver = self_->drive(resumed);
  self_->database
      .prepare(
          "UPDATE runs SET status = ?2, ended = 0, orchestrator = ?3, driver_pid = ?4, "
          "driver_started = ?5, steps = ?6 WHERE id = ?1")
      .bind(run.id, static_cast<int>(RunStatus::running), run.orchestrator, driver.process.pid,
            write_driver(driver), run.steps)
      .run();
}

void RunStore::finish_run(const RunRecord& run) {
  self_->database
      .prepare(
          "UPDATE runs SET status = ?2, ended = ?3, took = ?4, same_as = ?5, steps = ?6, cached = "
          "?7, failed = ?8 WHERE id = ?1")
      .bind(run.id, static_cast<int>(run.status), to_integer(run.ended), run.took.count(),
            run.same_as, run.steps, run.cached, run.failed)
      .run();
  if (run.status != RunStatus::running) self_->held.erase(run.id);
}

void RunStore::put_step(const StepRecord& step) {
  const auto outputs = write_outputs(step.outputs);
  self_->database
      .prepare("INSERT INTO steps (" STEP_COLUMNS
               ")"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
               " ON CONFLICT (run, name) DO UPDATE SET " STEP_CHANGES)
      .bind(step.run, step.name, static_cast<int>(step.status), step.key, step.reused_from,
            to_integer(step.started), to_integer(step.ended), step.took.count(), step.attempts,
            step.image, step.message, step.parameters, outputs)
      .run();
}

void RunStore::expand_step(const std::string& run, const std::string& step, std::size_t steps) {
  self_->database.prepare("DELETE FROM steps WHERE run = ?1 AND name = ?2").bind(run, step).run();
  self_->database.prepare("UPDATE runs SET steps = ?2 WHERE id = ?1").bind(run, steps).run();
}

void RunStore::put_attempt(const AttemptRecord& attempt) {
  const auto gpus = write_gpus(attempt.gpus);
  const auto usage = write_measured(attempt);
  self_->database
      .prepare("INSERT OR REPLACE INTO attempts (" ATTEMPT_COLUMNS
               ")"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")
      .bind(attempt.run, attempt.step, attempt.number, to_integer(attempt.started),
            to_integer(attempt.ended), attempt.took.count(), attempt.exit_code,
            attempt.failure_kind, attempt.message, attempt.log, gpus, usage)
      .run();
}

std::vector<RunRecord> RunStore::runs(std::size_t limit, const std::string& pipeline,
                                      const std::string& tag) {
  auto row = self_->database.prepare("SELECT " RUN_COLUMNS
                                     " FROM runs WHERE (?1 = '' OR pipeline = ?1) AND"
                                     " (?3 = '' OR EXISTS (SELECT 1 FROM json_each(tags) WHERE "
                                     "value = ?3)) ORDER BY rowid DESC LIMIT ?2");
  row.bind(pipeline, limit ? static_cast<std::int64_t>(limit) : -1, tag);
  std::vector<RunRecord> found;
  while (row.step()) found.push_back(read_run(row));
  return found;
}

std::optional<RunRecord> RunStore::find_run(const std::string& id_or_prefix) {
  const auto at = id_or_prefix.find('@');
  const auto which = at == std::string::npos ? id_or_prefix : id_or_prefix.substr(at + 1);
  if (which == "latest" || which == "latest-success") {
    auto newest = self_->database.prepare(
        "SELECT " RUN_COLUMNS
        " FROM runs WHERE (?1 = '' OR pipeline = ?1) AND (?2 = 0 OR status = ?3) ORDER BY rowid "
        "DESC LIMIT 1");
    const auto of_pipeline = at == std::string::npos ? "" : id_or_prefix.substr(0, at);
    newest.bind(of_pipeline, which == "latest-success", static_cast<int>(RunStatus::succeeded));
    return newest.step() ? std::optional(read_run(newest)) : std::nullopt;
  }
  auto row = self_->database.prepare(
      "SELECT " RUN_COLUMNS
      " FROM runs WHERE substr(id, 1, length(?1)) = ?1 AND id >= ?1 ORDER BY id LIMIT 5");
  row.bind(id_or_prefix);
  std::vector<RunRecord> found;
  while (row.step()) found.push_back(read_run(row));
  if (found.empty()) return std::nullopt;
  if (found.front().id == id_or_prefix || found.size() == 1) return found.front();
  std::string names;
  for (const auto& run : found) names += (names.empty() ? "" : ", ") + run.id;
  throw core::InputError("'" + id_or_prefix + "' is the beginning of several runs: " + names,
                         "write more of the identifier, or `latest`");
}

std::vector<StepRecord> RunStore::steps(const std::string& run, const std::string& only) {
  std::string shown_from;
  {
    auto row = self_->database.prepare("SELECT same_as FROM runs WHERE id = ?1");
    row.bind(run);
    if (row.step()) shown_from = row.text(0);
  }
  const auto& of = shown_from.empty() ? run : shown_from;
  static const std::string of_run =
      "SELECT name, status, key, reused_from, started, ended, took, attempts, image, message, "
      "parameters, outputs FROM steps WHERE run = ?1";
  static const std::string all = of_run + " ORDER BY id", one = of_run + " AND name = ?2";
  auto row = self_->database.prepare((only.empty() ? all : one).c_str());
  only.empty() ? row.bind(of) : row.bind(of, only);
  std::vector<StepRecord> found;
  while (row.step()) {
    StepRecord step{.run = run,
                    .name = row.text(0),
                    .status = static_cast<StepStatus>(row.integer(1)),
                    .key = row.text(2),
                    .reused_from = row.text(3)};
    step.image = row.text(8);
    step.message = row.text(9);
    step.parameters = row.text(10);
    step.outputs = read_outputs(row.text(11));
    if (shown_from.empty()) {
      step.started = to_time(row.integer(4));
      step.ended = to_time(row.integer(5));
      step.took = std::chrono::milliseconds(row.integer(6));
      step.attempts = static_cast<unsigned>(row.integer(7));
    } else {
      if (step.status == StepStatus::succeeded) step.reused_from = shown_from;
      if (step.status != StepStatus::skipped) step.status = StepStatus::cached;
    }
    found.push_back(std::move(step));
  }
  return found;
}

std::vector<AttemptRecord> RunStore::attempts(const std::string& run, const std::string& step) {
  auto row = self_->database.prepare("SELECT " ATTEMPT_COLUMNS
                                     " FROM attempts WHERE run = ?1 AND step = ?2 ORDER BY number");
  row.bind(run, step);
  std::vector<AttemptRecord> found;
  while (row.step()) found.push_back(read_attempt(row));
  return found;
}

std::vector<AttemptRecord> RunStore::attempts(const std::string& run) {
  auto row = self_->database.prepare("SELECT " ATTEMPT_COLUMNS
                                     " FROM attempts WHERE run = ?1 ORDER BY step, number");
  row.bind(run);
  std::vector<AttemptRecord> found;
  while (row.step()) found.push_back(read_attempt(row));
  return found;
}

void RunStore::for_each_attempt(const std::string& pipeline,
                                const std::function<void(const AttemptRecord&)>& use) {
  auto row = self_->database.prepare(
      "SELECT " ATTEMPT_COLUMNS
      " FROM attempts WHERE run IN (SELECT id FROM runs WHERE pipeline = ?1) ORDER BY started");
  row.bind(pipeline);
  while (row.step()) use(read_attempt(row));
}

std::vector<RunRecord> RunStore::mark_dead_runs(const std::string& gone) {
  const auto find = [&] {
    std::vector<RunRecord> dead;
    auto row = self_->database.prepare("SELECT " RUN_COLUMNS " FROM runs WHERE status = ?1");
    row.bind(static_cast<int>(RunStatus::running));
    while (row.step())
      if (auto run = read_run(row); run.id == gone || liveness(run) == Liveness::dead)
        dead.push_back(std::move(run));
    return dead;
  };
  auto dead = find();
  if (dead.empty()) return dead;
  transaction([&] {
    dead = find();  // Since the first look a driver may have ended its run, or another one may have
                    // resumed it.
    for (auto& run : dead) {
      run.status = RunStatus::interrupted;
      self_->database.prepare("UPDATE runs SET status = ?2 WHERE id = ?1")
          .bind(run.id, static_cast<int>(run.status))
          .run();
      self_->database
          .prepare(
              "UPDATE steps SET status = ?2, message = 'its run died' WHERE run = ?1 AND status IN "
              "(?3, ?4)")
          .bind(run.id, static_cast<int>(StepStatus::cancelled),
                static_cast<int>(StepStatus::pending), static_cast<int>(StepStatus::running))
          .run();
    }
  });
  return dead;
}

std::vector<std::string> RunStore::check() {
  std::vector<std::string> wrong;
  try {
    auto row = self_->database.prepare("PRAGMA integrity_check(100)");
    while (row.step())
      if (auto text = row.text(0); text != "ok") wrong.push_back(std::move(text));
    for (const auto& run : runs()) {
      steps(run.id);
      if (wrong.size() >= 100) break;
    }
  } catch (const core::EnvironmentError& error) {
    wrong.emplace_back(error.what());
  }
  return wrong;
}

void RunStore::require_plain_tables() {
  auto other = self_->database.prepare(
      "SELECT name FROM sqlite_master AS it WHERE sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE "
      "'CREATE INDEX %' OR EXISTS (SELECT 1 FROM pragma_table_xinfo(it.name) WHERE hidden <> 0)");
  if (other.step())
    throw core::EnvironmentError("the run store is not one that pipe wrote: it has '" +
                                 core::printable(other.text(0)) + "'");
  auto check = self_->database.prepare("PRAGMA quick_check(1)");
  const auto found = check.step() ? check.text(0) : std::string();
  if (found != "ok")
    throw core::EnvironmentError("the run store is damaged: " + core::printable(found));
}

void RunStore::take_run(const RunStore& from, const std::string& run) {
  const auto file = (from.folder() / "pipe.db").string();
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
      // A step that has become its instances is gone there.
      take(
          "DELETE FROM steps WHERE run = ?1 AND name NOT IN "
          "(SELECT name FROM other.steps WHERE run = ?1)");
      take("INSERT INTO steps (" STEP_COLUMNS ") SELECT " STEP_COLUMNS
           " FROM other.steps WHERE run = ?1 ORDER BY id ON CONFLICT (run, name) DO UPDATE "
           "SET " STEP_CHANGES);
      take("INSERT OR REPLACE INTO attempts (" ATTEMPT_COLUMNS ") SELECT " ATTEMPT_COLUMNS
           " FROM other.attempts WHERE run = ?1");
      take("INSERT OR REPLACE INTO metrics SELECT * FROM other.metrics WHERE run = ?1");
      take(
          "INSERT OR IGNORE INTO blobs (kind, key, value) SELECT kind, key, value FROM other.blobs "
          "WHERE key = ?1");
    });
  } catch (...) {
    failed = std::current_exception();
  }
  self_->database.prepare("DETACH other").run();
  if (failed) std::rethrow_exception(failed);
}

std::vector<core::Digest> RunStore::referenced_artifacts() {
  std::set<core::Digest> digests;
  auto row = self_->database.prepare(
      "SELECT outputs FROM steps WHERE outputs <> '[]' UNION SELECT outputs FROM cache WHERE "
      "outputs <> '[]'");
  while (row.step())
    for (const auto& output : read_outputs(row.text(0))) digests.insert(output.digest);
  auto code = self_->database.prepare(
      "SELECT DISTINCT json_extract(usage, '$.code') FROM attempts WHERE usage <> ''");
  while (code.step())
    if (!code.is_null(0)) digests.insert(core::Digest::from_hex(code.text(0)));
  Published published(*this);
  for (const auto& name : published.names())
    for (const auto& version : published.of(name).versions) digests.insert(version.output.digest);
  return {digests.begin(), digests.end()};
}

}  // namespace pipeline::store
