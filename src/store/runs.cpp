#include "store/runs.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/json_member.hpp"
#include "model/instance.hpp"
#include "store/attempts.hpp"
#include "store/database.hpp"
#include "store/driver_locks.hpp"
#include "store/key_values.hpp"
#include "store/record_texts.hpp"
#include "store/run_schema.hpp"

namespace pipeline::store {
namespace {

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

}  // namespace

void Runs::add(const RunRecord& run) {
  const auto driver = drivers_.claim(run);
  database_
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

void Runs::resume(const RunRecord& run) {
  auto resumed = run;
  resumed.status = RunStatus::running;
  const auto driver = drivers_.claim(resumed);
  database_
      .prepare(
          "UPDATE runs SET status = ?2, ended = 0, orchestrator = ?3, driver_pid = ?4, "
          "driver_started = ?5, steps = ?6 WHERE id = ?1")
      .bind(run.id, static_cast<int>(RunStatus::running), run.orchestrator, driver.process.pid,
            write_driver(driver), run.steps)
      .run();
}

void Runs::finish(const RunRecord& run) {
  database_
      .prepare(
          "UPDATE runs SET status = ?2, ended = ?3, took = ?4, same_as = ?5, steps = ?6, cached = "
          "?7, failed = ?8 WHERE id = ?1")
      .bind(run.id, static_cast<int>(run.status), to_integer(run.ended), run.took.count(),
            run.same_as, run.steps, run.cached, run.failed)
      .run();
  if (run.status != RunStatus::running) drivers_.release(run.id);
}

void Runs::put_step(const StepRecord& step) {
  const auto outputs = write_outputs(step.outputs);
  const auto failure = write_failure(step.failure);
  database_
      .prepare("INSERT INTO steps (" STEP_COLUMNS
               ")"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
               " ON CONFLICT (run, name) DO UPDATE SET " STEP_CHANGES)
      .bind(step.run, step.name, static_cast<int>(step.status), step.key, step.reused_from,
            to_integer(step.started), to_integer(step.ended), step.took.count(), step.attempts,
            step.image, step.message, step.parameters, outputs, failure)
      .run();
}

void Runs::expand_step(const std::string& run, const std::string& step, std::size_t steps) {
  database_.prepare("DELETE FROM steps WHERE run = ?1 AND name = ?2").bind(run, step).run();
  database_.prepare("UPDATE runs SET steps = ?2 WHERE id = ?1").bind(run, steps).run();
}

void Runs::remove_step(const std::string& run, const std::string& step) {
  attempts_.remove(run, step);
  database_.prepare("DELETE FROM steps WHERE run = ?1 AND name = ?2").bind(run, step).run();
}

std::vector<RunRecord> Runs::list(std::size_t limit, const std::string& pipeline,
                                  const std::string& tag) {
  auto row = database_.prepare("SELECT " RUN_COLUMNS
                               " FROM runs WHERE (?1 = '' OR pipeline = ?1) AND"
                               " (?3 = '' OR EXISTS (SELECT 1 FROM json_each(tags) WHERE "
                               "value = ?3)) ORDER BY rowid DESC LIMIT ?2");
  row.bind(pipeline, limit ? static_cast<std::int64_t>(limit) : -1, tag);
  std::vector<RunRecord> found;
  while (row.step()) found.push_back(read_run(row));
  return found;
}

std::vector<RunRecord> Runs::running() {
  auto row = database_.prepare("SELECT " RUN_COLUMNS " FROM runs WHERE status = ?1");
  row.bind(static_cast<int>(RunStatus::running));
  std::vector<RunRecord> found;
  while (row.step()) found.push_back(read_run(row));
  return found;
}

std::optional<RunRecord> Runs::find(const std::string& id_or_prefix) {
  const auto at = id_or_prefix.find('@');
  const auto which = at == std::string::npos ? id_or_prefix : id_or_prefix.substr(at + 1);
  if (which == "latest" || which == "latest-success") {
    auto newest = database_.prepare(
        "SELECT " RUN_COLUMNS
        " FROM runs WHERE (?1 = '' OR pipeline = ?1) AND (?2 = 0 OR status = ?3) ORDER BY rowid "
        "DESC LIMIT 1");
    const auto of_pipeline = at == std::string::npos ? "" : id_or_prefix.substr(0, at);
    newest.bind(of_pipeline, which == "latest-success", static_cast<int>(RunStatus::succeeded));
    return newest.step() ? std::optional(read_run(newest)) : std::nullopt;
  }
  auto row = database_.prepare(
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

std::unordered_map<std::string, Runs::LastTry> Runs::last_tries(const std::string& pipeline) {
  // With max(), SQLite takes the other columns from the row that has the maximum.
  auto row = database_.prepare(
      "SELECT steps.name, steps.run, steps.status, max(runs.rowid) FROM steps JOIN runs ON runs.id "
      "= steps.run WHERE runs.pipeline = ?1 AND steps.attempts > 0 GROUP BY steps.name");
  row.bind(pipeline);
  std::unordered_map<std::string, LastTry> found;
  while (row.step())
    found.emplace(row.text(0), LastTry{row.text(1), static_cast<StepStatus>(row.integer(2))});
  return found;
}

/// Moves the steps that the run has made, such as rounds, to the places of the steps that the file
/// has for them. Their records are newer than those of all others.
void Runs::put_in_order(const std::string& run, std::vector<StepRecord>& steps) {
  auto row = database_.prepare(
      "SELECT value FROM blobs WHERE kind = ?1 AND key = ?2 AND instr(value, '\"place\":')");
  row.bind(declared_kind, run);
  if (!row.step()) return;
  const auto declared = core::parse_json(row.text(0));
  if (!declared.is_object()) return;
  const auto place_of = [&](const StepRecord& step) {
    const auto* entry = core::member(declared, model::base_name(step.name));
    const auto* place = entry ? core::member(*entry, "place") : nullptr;
    return place && place->is_number_unsigned() ? place->get<std::uint64_t>() : ~std::uint64_t{0};
  };
  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // Place and index of each record.
  for (std::size_t i = 0; i < steps.size(); ++i) order.emplace_back(place_of(steps[i]), i);
  if (std::ranges::is_sorted(order)) return;
  std::ranges::sort(order);
  std::vector<StepRecord> ordered;
  ordered.reserve(steps.size());
  for (const auto& [place, index] : order) ordered.push_back(std::move(steps[index]));
  steps = std::move(ordered);
}

std::vector<StepRecord> Runs::steps(const std::string& run, const std::string& only) {
  std::string same_as;
  {
    auto row = database_.prepare("SELECT same_as FROM runs WHERE id = ?1");
    row.bind(run);
    if (row.step()) same_as = row.text(0);
  }
  const auto& owner = same_as.empty() ? run : same_as;  // The run that has the rows.
  static const std::string of_run =
      "SELECT name, status, key, reused_from, started, ended, took, attempts, image, message, "
      "parameters, outputs, failure FROM steps WHERE run = ?1";
  static const std::string all = of_run + " ORDER BY id", one = of_run + " AND name = ?2";
  auto row = database_.prepare((only.empty() ? all : one).c_str());
  only.empty() ? row.bind(owner) : row.bind(owner, only);
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
    step.failure = read_failure(row.text(12));
    if (same_as.empty()) {
      step.started = to_time(row.integer(4));
      step.ended = to_time(row.integer(5));
      step.took = std::chrono::milliseconds(row.integer(6));
      step.attempts = static_cast<unsigned>(row.integer(7));
    } else {
      if (step.status == StepStatus::succeeded) step.reused_from = same_as;
      if (step.status != StepStatus::skipped) step.status = StepStatus::cached;
    }
    found.push_back(std::move(step));
  }
  if (only.empty()) put_in_order(owner, found);
  return found;
}

std::vector<RunRecord> Runs::mark_dead(const std::string& known_dead) {
  const auto find = [&] {
    auto runs = running();
    std::erase_if(runs, [&](const RunRecord& run) {
      return run.id != known_dead && drivers_.liveness(run) != Liveness::dead;
    });
    return runs;
  };
  auto dead = find();
  if (dead.empty()) return dead;
  database_.transaction([&] {
    dead = find();  // A driver may have ended or resumed its run since the first look.
    for (auto& run : dead) {
      run.status = RunStatus::interrupted;
      database_.prepare("UPDATE runs SET status = ?2 WHERE id = ?1")
          .bind(run.id, static_cast<int>(run.status))
          .run();
      database_
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

void Runs::set_tags(const std::string& run, const std::vector<std::string>& tags) {
  const auto text = nlohmann::json(tags).dump();
  database_.prepare("UPDATE runs SET tags = ?2 WHERE id = ?1").bind(run, text).run();
}

void Runs::set_note(const std::string& run, const std::string& note) {
  database_.prepare("UPDATE runs SET note = ?2 WHERE id = ?1").bind(run, note).run();
}

}  // namespace pipeline::store
