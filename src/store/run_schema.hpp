/// @file
/// The tables of the run store, the migrations of older ones, and the columns of its records.
#pragma once

namespace pipeline::store::run_schema {

inline constexpr int application_id = 0x70697065;  // The text "pipe".
inline constexpr int version = 6;
#define METRICS_TABLE                                                                           \
  "CREATE TABLE metrics (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step TEXT NOT "   \
  "NULL, attempt INTEGER NOT NULL, name TEXT NOT NULL, first INTEGER NOT NULL, count INTEGER "  \
  "NOT NULL, last BLOB NOT NULL, points BLOB NOT NULL, PRIMARY KEY (run, step, attempt, name, " \
  "first)) WITHOUT ROWID;"
#define TASKS_TABLE                                                                               \
  "CREATE TABLE tasks (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step TEXT NOT NULL, " \
  "attempt INTEGER NOT NULL, rank INTEGER NOT NULL, exit_code INTEGER, node TEXT NOT NULL, log "  \
  "TEXT NOT NULL, usage TEXT NOT NULL, PRIMARY KEY (run, step, attempt, rank)) WITHOUT ROWID;"
inline constexpr auto tables = R"sql(
CREATE TABLE runs (
  id TEXT PRIMARY KEY, pipeline TEXT NOT NULL, orchestrator TEXT NOT NULL, file TEXT NOT NULL, parameters TEXT NOT NULL, git_commit TEXT NOT NULL,
  git_dirty INTEGER NOT NULL, status INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, took INTEGER NOT NULL,
  driver_pid INTEGER NOT NULL, driver_started TEXT NOT NULL, same_as TEXT NOT NULL, steps INTEGER NOT NULL, cached INTEGER NOT NULL, failed INTEGER NOT NULL,
  tags TEXT NOT NULL DEFAULT '[]', note TEXT NOT NULL DEFAULT '');
CREATE INDEX runs_by_status ON runs (status);
CREATE TABLE steps (
  id INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL, status INTEGER NOT NULL, key TEXT NOT NULL,
  reused_from TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, took INTEGER NOT NULL, attempts INTEGER NOT NULL, image TEXT NOT NULL,
  message TEXT NOT NULL, parameters TEXT NOT NULL, outputs TEXT NOT NULL,
  failure TEXT NOT NULL DEFAULT '', UNIQUE (run, name));
CREATE TABLE attempts (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step TEXT NOT NULL, number INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL,
  took INTEGER NOT NULL, exit_code INTEGER, failure_kind TEXT NOT NULL, message TEXT NOT NULL, log TEXT NOT NULL,
  gpus TEXT NOT NULL DEFAULT '', usage TEXT NOT NULL DEFAULT '', failure TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run, step, number)) WITHOUT ROWID;
CREATE TABLE cache (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, run TEXT NOT NULL, pipeline TEXT NOT NULL, step TEXT NOT NULL, outputs TEXT NOT NULL, parts TEXT NOT NULL);
CREATE INDEX cache_by_step ON cache (pipeline, step);
CREATE TABLE blobs (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
)sql" METRICS_TABLE TASKS_TABLE;
inline constexpr const char* migrations[] = {
    "ALTER TABLE attempts ADD COLUMN gpus TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE attempts ADD COLUMN usage TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';" METRICS_TABLE,
    TASKS_TABLE,
    "ALTER TABLE attempts ADD COLUMN failure TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE steps ADD COLUMN failure TEXT NOT NULL DEFAULT '';"};

#define RUN_COLUMNS                                                                               \
  "id, pipeline, orchestrator, file, parameters, git_commit, git_dirty, status, started, ended, " \
  "took, driver_pid, driver_started, same_as, steps, "                                            \
  "cached, failed, tags, note"
#define STEP_COLUMNS                                                                      \
  "run, name, status, key, reused_from, started, ended, took, attempts, image, message, " \
  "parameters, outputs, failure"
#define STEP_CHANGES                                                                             \
  "status = excluded.status, key = excluded.key, reused_from = excluded.reused_from, started = " \
  "excluded.started, ended = excluded.ended, "                                                   \
  "took = excluded.took, attempts = excluded.attempts, image = excluded.image, message = "       \
  "excluded.message, parameters = excluded.parameters, "                                         \
  "outputs = excluded.outputs, failure = excluded.failure"
#define ATTEMPT_COLUMNS                                                                           \
  "run, step, number, started, ended, took, exit_code, failure_kind, message, log, gpus, usage, " \
  "failure"
#define TASK_COLUMNS "run, step, attempt, rank, exit_code, node, log, usage"

}  // namespace pipeline::store::run_schema
