#include "store/attempts.hpp"

#include "store/database.hpp"
#include "store/record_texts.hpp"
#include "store/run_schema.hpp"

namespace pipeline::store {
namespace {

std::optional<int> exit_code_of(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return static_cast<int>(row.integer(column));
}

/// @param row has ATTEMPT_COLUMNS
AttemptRecord read_attempt(const Statement& row) {
  AttemptRecord attempt{
      .run = row.text(0), .step = row.text(1), .number = static_cast<unsigned>(row.integer(2))};
  attempt.started = to_time(row.integer(3));
  attempt.ended = to_time(row.integer(4));
  attempt.took = std::chrono::milliseconds(row.integer(5));
  attempt.exit_code = exit_code_of(row, 6);
  attempt.failure_kind = row.text(7);
  attempt.message = row.text(8);
  attempt.log = row.text(9);
  attempt.gpus = read_gpus(row.text(10));
  read_measured(row.text(11), attempt);
  auto failure = read_failure(row.text(12));
  attempt.hints = std::move(failure.hints);
  attempt.details = std::move(failure.details);
  return attempt;
}

std::vector<AttemptRecord> read_attempts(Statement& row) {
  std::vector<AttemptRecord> found;
  while (row.step()) found.push_back(read_attempt(row));
  return found;
}

}  // namespace

void Attempts::put(const AttemptRecord& attempt, std::span<const TaskRecord> tasks) {
  const auto gpus = write_gpus(attempt.gpus);
  const auto usage = write_measured(attempt);
  const auto failure = write_failure({attempt.failure_kind, attempt.hints, attempt.details});
  database_
      .prepare("INSERT OR REPLACE INTO attempts (" ATTEMPT_COLUMNS
               ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")
      .bind(attempt.run, attempt.step, attempt.number, to_integer(attempt.started),
            to_integer(attempt.ended), attempt.took.count(), attempt.exit_code,
            attempt.failure_kind, attempt.message, attempt.log, gpus, usage, failure)
      .run();
  if (tasks.size() < 2) return;
  for (const auto& task : tasks) {
    const auto used = write_measured(task);
    database_
        .prepare("INSERT OR REPLACE INTO tasks (" TASK_COLUMNS
                 ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
        .bind(attempt.run, attempt.step, attempt.number, task.rank, task.exit_code, task.node,
              task.log, used)
        .run();
  }
}

std::vector<AttemptRecord> Attempts::list(const std::string& run, const std::string& step) {
  auto row = database_.prepare("SELECT " ATTEMPT_COLUMNS
                               " FROM attempts WHERE run = ?1 AND step = ?2 ORDER BY number");
  return read_attempts(row.bind(run, step));
}

std::vector<AttemptRecord> Attempts::list(const std::string& run) {
  auto row = database_.prepare("SELECT " ATTEMPT_COLUMNS
                               " FROM attempts WHERE run = ?1 ORDER BY step, number");
  return read_attempts(row.bind(run));
}

std::vector<TaskRecord> Attempts::tasks(const AttemptRecord& attempt) {
  auto row = database_.prepare(
      "SELECT rank, exit_code, node, log, usage FROM tasks WHERE run = ?1 AND step = ?2 AND "
      "attempt = ?3 ORDER BY rank");
  row.bind(attempt.run, attempt.step, attempt.number);
  std::vector<TaskRecord> tasks;
  while (row.step()) {
    auto& task = tasks.emplace_back();
    task.rank = static_cast<unsigned>(row.integer(0));
    task.exit_code = exit_code_of(row, 1);
    task.node = row.text(2);
    task.log = row.text(3);
    read_measured(row.text(4), task);
  }
  if (tasks.empty())
    tasks.push_back({0, attempt.exit_code, attempt.node, attempt.log, attempt.usage});
  return tasks;
}

void Attempts::for_each(const std::string& pipeline,
                        const std::function<void(const AttemptRecord&)>& use) {
  auto row = database_.prepare(
      "SELECT " ATTEMPT_COLUMNS
      " FROM attempts WHERE run IN (SELECT id FROM runs WHERE pipeline = ?1) ORDER BY started");
  row.bind(pipeline);
  while (row.step()) use(read_attempt(row));
}

void Attempts::remove(const std::string& run, const std::string& step) {
  for (const char* sql : {"DELETE FROM attempts WHERE run = ?1 AND step = ?2",
                          "DELETE FROM tasks WHERE run = ?1 AND step = ?2",
                          "DELETE FROM metrics WHERE run = ?1 AND step = ?2"})
    database_.prepare(sql).bind(run, step).run();
}

}  // namespace pipeline::store
