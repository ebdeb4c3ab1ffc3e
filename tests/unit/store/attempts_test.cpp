#include "store/attempts.hpp"

#include "core/error.hpp"
#include "unit/store/run_store_fixture.hpp"

namespace pipeline::store {
namespace {

AttemptRecord attempt_record(const std::string& step = "train") {
  AttemptRecord attempt{
      .run = "r", .step = step, .exit_code = 3, .log = log_name("r", step, 1), .node = "node-1"};
  attempt.usage.user = std::chrono::microseconds(7);
  return attempt;
}

std::vector<TaskRecord> two_tasks() {
  std::vector<TaskRecord> tasks{{0, 0, "node-1", log_name("r", "train", 1), {}},
                                {1, 3, "node-2", log_name("r", "train", 1, 1), {}}};
  tasks[1].usage.peak_memory = 5;
  tasks[1].usage.gpus = {{"GPU-a", 0.25, 1.0, 10, 20, 30}};
  tasks[1].node_rank = 1;
  tasks[1].gpus = {4, 5};
  tasks[1].running = std::chrono::milliseconds(70);
  tasks[1].has_failed_first = true;
  return tasks;
}

TEST_F(RunStoreTest, an_attempt_with_one_task_has_rank_0_and_no_row_for_it) {
  RunStore store(state);
  store.runs().add(run_record("r"));
  store.attempts().put(attempt_record());
  store.attempts().put(attempt_record("other"), std::vector<TaskRecord>{{.exit_code = 3}});
  for (const auto* step : {"train", "other"}) {
    const auto attempt = store.attempts().list("r", step).at(0);
    const TaskRecord task{0, 3, "node-1", attempt.log, attempt.usage};
    EXPECT_EQ(store.attempts().tasks(attempt), std::vector{task}) << step;
  }
  EXPECT_EQ(sql_of(database, "SELECT count(*) FROM tasks", "pipe-checked"), "0");
}

TEST_F(RunStoreTest, tasks_of_an_attempt_are_read_by_rank_by_the_next_process) {
  auto tasks = two_tasks();
  std::ranges::reverse(tasks);
  {
    RunStore store(state);
    store.runs().add(run_record("r"));
    store.attempts().put(attempt_record(), tasks);
    tasks[0].exit_code = std::nullopt;
    store.attempts().put(attempt_record(), tasks);
  }
  std::ranges::reverse(tasks);
  RunStore store(state);
  const auto attempts = store.attempts().list("r");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(store.attempts().tasks(attempts[0]), tasks);
}

TEST_F(RunStoreTest, tasks_are_removed_with_their_attempt_step_and_run) {
  RunStore store(state);
  auto run = run_record("r");
  store.runs().add(run);
  run.status = RunStatus::succeeded;
  store.runs().finish(run);
  const auto rows = [&] { return sql_of(database, "SELECT count(*) FROM tasks", "pipe-checked"); };
  store.attempts().put(attempt_record(), two_tasks());
  store.attempts().put(attempt_record("other"), two_tasks());
  EXPECT_EQ(rows(), "4");
  store.attempts().remove("r", "other");
  EXPECT_EQ(rows(), "2");
  EXPECT_TRUE(store.remove_run("r", false));
  EXPECT_EQ(rows(), "0");
}

TEST_F(RunStoreTest, tasks_are_imported_with_their_run) {
  RunStore other(folder.path() / "other"), store(state);
  other.runs().add(run_record("r"));
  other.attempts().put(attempt_record(), two_tasks());
  for (int times = 0; times < 2; ++times) {
    store.import_run(other, "r");
    EXPECT_EQ(store.attempts().tasks(store.attempts().list("r").at(0)), two_tasks());
  }
}

TEST_F(RunStoreTest, attempts_of_the_version_without_tasks_have_one_each) {
  {
    RunStore store(state);
    store.runs().add(run_record("r"));
    store.attempts().put(attempt_record());
    ASSERT_EQ(sql_of(database,
                     "ALTER TABLE attempts DROP COLUMN failure; ALTER TABLE steps DROP COLUMN "
                     "failure; DROP TABLE tasks; PRAGMA user_version = 4; SELECT 'ok'",
                     "pipe-checked"),
              "ok");
  }
  RunStore store(state);
  const auto attempts = store.attempts().list("r");
  ASSERT_EQ(attempts.size(), 1u);
  ASSERT_EQ(store.attempts().tasks(attempts[0]).size(), 1u);
  EXPECT_EQ(store.attempts().tasks(attempts[0])[0].exit_code, 3);
  store.attempts().put(attempt_record(), two_tasks());
  EXPECT_EQ(store.attempts().tasks(attempts[0]), two_tasks());
}

TEST_F(RunStoreTest, damaged_usage_of_a_task_is_reported) {
  RunStore store(state);
  store.runs().add(run_record("r"));
  store.attempts().put(attempt_record(), two_tasks());
  for (const std::string usage :
       {"[1]", R"({"node_rank": -1})", R"({"node_rank": "a"})", R"({"gpu_indices": ["a"]})"}) {
    sql_of(database, "UPDATE tasks SET usage = '" + usage + "'", "pipe-checked");
    EXPECT_THROW(store.attempts().tasks(store.attempts().list("r").at(0)), core::EnvironmentError)
        << usage;
  }
}

TEST_F(RunStoreTest, logs_of_an_attempts_tasks_have_names_of_their_own) {
  EXPECT_EQ(log_name("r", "train", 2), "r/train.2.log");
  EXPECT_EQ(log_name("r", "train", 2, 0), log_name("r", "train", 2));
  EXPECT_EQ(log_name("r", "train", 2, 3), "r/train.2.rank-3.log");
}

TEST(StatePaths, each_run_has_its_files_below_the_state_folder) {
  const StatePaths paths("/state");
  EXPECT_EQ(paths.database(), "/state/pipe.db");
  EXPECT_EQ(paths.log_file("r/train.1.log"), "/state/logs/r/train.1.log");
  EXPECT_EQ(paths.work_folder("r"), "/state/work/r");
  EXPECT_EQ(paths.failed_folder("r"), "/state/failed/r");
  EXPECT_EQ(paths.detached_folder("r"), "/state/detached/r");
  EXPECT_EQ(paths.heartbeat_file("r"), "/state/drivers/r");
}

TEST(StatePaths, names_that_lead_out_of_the_state_folder_are_refused) {
  const StatePaths paths("/state");
  for (const auto* name : {"", "/etc", "..", "a/../../b"}) {
    EXPECT_THROW(paths.log_file(name), core::EnvironmentError) << name;
    EXPECT_THROW(paths.work_folder(name), core::EnvironmentError) << name;
    EXPECT_THROW(paths.failed_folder(name), core::EnvironmentError) << name;
    EXPECT_THROW(paths.detached_folder(name), core::EnvironmentError) << name;
    EXPECT_THROW(paths.heartbeat_file(name), core::EnvironmentError) << name;
  }
}

}  // namespace
}  // namespace pipeline::store
