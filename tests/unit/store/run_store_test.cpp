#include "store/run_store.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include <sqlite3.h>
#include <unistd.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "unit/store/processes.hpp"
#include "unit/store/run_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(RunStoreTest, names_of_outputs_that_would_lead_elsewhere_are_not_read) {
  RunStore store(state);
  store.runs().add(run_record("r1"));
  for (const char* name : {"../../x", "..", ".", "", "a/b", "/etc/passwd", "-rf", "a\nb"}) {
    auto step = step_record("r1", "zeta");
    step.outputs[0].file_name = name;
    store.runs().put_step(step);
    EXPECT_THROW(store.runs().steps("r1"), core::EnvironmentError) << name;
    step.outputs[0] = {name, "data.csv", {}, false, 1};
    store.runs().put_step(step);
    EXPECT_THROW(store.runs().steps("r1"), core::EnvironmentError) << name;
    store.cache().add({"k-zeta", "r1", "zeta", step.outputs}, "digits", {});
    EXPECT_THROW(store.cache().find("k-zeta"), core::EnvironmentError) << name;
  }
  store.runs().put_step(step_record("r1", "zeta"));
  EXPECT_EQ(store.runs().steps("r1").at(0).outputs.at(0).file_name, "data.csv");
}

TEST_F(RunStoreTest, imports_one_run_of_another_store_and_nothing_else) {
  core::TemporaryFolder elsewhere;
  RunStore other(elsewhere.path()), store(state);
  for (auto* each : {&other, &store}) {
    each->runs().add(run_record("r1"));
    each->runs().add(run_record("r2"));
    each->runs().put_step(step_record("r1", "zeta", StepStatus::pending));
    each->runs().put_step(step_record("r2", "zeta", StepStatus::pending));
    each->key_values().put(invocation_kind, "r1", each == &other ? "theirs" : "ours");
  }
  auto ended = run_record("r1");
  ended.status = RunStatus::failed;
  ended.failed = 1;
  ended.file = "/elsewhere/pipeline.yaml";
  other.runs().finish(ended);
  other.runs().put_step(step_record("r1", "zeta"));
  other.runs().put_step(step_record("r2", "zeta"));
  other.attempts().put({.run = "r1", .step = "zeta", .exit_code = 3, .log = "r1/zeta.1.log"});
  other.cache().add({"k-zeta", "r1", "zeta", {}}, "digits", {});
  store.import_run(other, "r1");
  store.import_run(other, "r1");
  EXPECT_EQ(store.runs().find("r1")->status, RunStatus::failed);
  EXPECT_EQ(store.runs().find("r1")->failed, 1u);
  EXPECT_EQ(store.runs().find("r1")->file, "/x/pipeline.yaml")
      << "the record has the path on the machine that began the run";
  ASSERT_EQ(store.runs().steps("r1").size(), 1u);
  EXPECT_EQ(store.runs().steps("r1")[0].status, StepStatus::succeeded);
  EXPECT_EQ(store.runs().steps("r1")[0].outputs.size(), 2u);
  EXPECT_EQ(store.attempts().list("r1", "zeta").at(0).exit_code, 3);
  EXPECT_EQ(store.runs().steps("r2")[0].status, StepStatus::pending);
  EXPECT_EQ(store.key_values().find(invocation_kind, "r1"), "ours");
  EXPECT_FALSE(store.cache().find("k-zeta"))
      << "the outputs of the imported step are not on this machine";
  RunStore empty(elsewhere.path() / "empty");
  empty.import_run(other, "r1");
  EXPECT_EQ(empty.runs().list().size(), 1u);
  EXPECT_EQ(empty.runs().find("r1")->file, "/x/pipeline.yaml");
  EXPECT_EQ(empty.key_values().find(invocation_kind, "r1"), "theirs");
}

TEST_F(RunStoreTest, records_are_read_by_the_next_process) {
  const auto attempt = [] {
    AttemptRecord a{.run = "r1", .step = "train", .number = 1};
    a.exit_code = 137;
    a.failure_kind = "out_of_memory";
    a.message = "killed";
    a.log = "r1/train.1.log";
    a.usage.user = std::chrono::microseconds(7);
    a.phases.transfers = std::chrono::milliseconds(5);
    a.node = "node-1";
    a.image = "sha256:1a2b";
    a.usage.gpus = {{"GPU-a", 0.25, 1.0, 10, 20, 30}, {"MIG-1", {}, {}, 1, 2, 3}};
    return a;
  }();
  {
    RunStore store(state);
    store.runs().add(run_record("r1"));
    store.runs().put_step(step_record("r1", "zeta", StepStatus::pending));
    store.runs().put_step(step_record("r1", "alpha", StepStatus::pending));
    store.runs().put_step(step_record("r1", "zeta"));
    store.attempts().put(attempt);
    store.attempts().put({.run = "r1", .step = "train", .number = 2});
    auto run = run_record("r1");
    run.status = RunStatus::failed;
    run.took = std::chrono::milliseconds(77);
    run.failed = 1;
    store.runs().finish(run);
    store.key_values().put("plan", "x", std::string("a\0b", 3));
  }
  RunStore store(state);
  const auto run = store.runs().find("r1");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status, RunStatus::failed);
  EXPECT_EQ(run->parameters, R"({"c":1.0})");
  EXPECT_TRUE(run->git_dirty);
  EXPECT_EQ(run->took.count(), 77);
  EXPECT_EQ(run->failed, 1u);
  EXPECT_EQ(run->driver.process.started, ProcessId::self().started);
  const auto steps = store.runs().steps("r1");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].name, "zeta") << "steps are in the order in which they were first recorded";
  EXPECT_EQ(steps[0].status, StepStatus::succeeded);
  EXPECT_EQ(steps[0].message, "müde");
  EXPECT_EQ(steps[0].attempts, 2u);
  ASSERT_EQ(steps[0].outputs.size(), 2u);
  EXPECT_EQ(steps[0].outputs[1].digest, core::sha256("mzeta"));
  EXPECT_TRUE(steps[0].outputs[1].is_directory);
  EXPECT_EQ(steps[0].outputs[1].bytes, 34u);
  const auto attempts = store.attempts().list("r1", "train");
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[0].exit_code, 137);
  EXPECT_EQ(attempts[0].log, "r1/train.1.log");
  EXPECT_EQ(attempts[0].usage, attempt.usage);
  EXPECT_EQ(attempts[0].phases, attempt.phases);
  EXPECT_EQ(attempts[0].node, "node-1");
  EXPECT_EQ(attempts[0].image, "sha256:1a2b");
  EXPECT_FALSE(attempts[1].exit_code);
  EXPECT_EQ(store.key_values().find("plan", "x"), std::string("a\0b", 3));
  store.key_values().remove("plan", "x");
  EXPECT_FALSE(store.key_values().find("plan", "x"));
}

TEST_F(RunStoreTest, run_is_found_by_identifier_prefix_and_latest) {
  RunStore store(state);
  EXPECT_FALSE(store.runs().find("latest"));
  for (const auto* id :
       {"20261121-081500-7f3a9c", "20261121-081501-aaaaaa", "20261120-000000-000000"})
    store.runs().add(run_record(id));
  store.runs().add(run_record("20261121-081500", "exactly a prefix"));
  EXPECT_EQ(store.runs().find("20261121-081501")->id, "20261121-081501-aaaaaa");
  EXPECT_EQ(store.runs().find("20261121-081500")->pipeline, "exactly a prefix")
      << "the whole identifier wins over a prefix";
  EXPECT_EQ(store.runs().find("latest")->id, "20261121-081500")
      << "the latest run is the last one recorded, not the last by name";
  EXPECT_FALSE(store.runs().find("2027"));
  EXPECT_FALSE(store.runs().find("%"));
  EXPECT_FALSE(store.runs().find("_0261120-000000-000000"));
  try {
    store.runs().find("20261121");
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("20261121-081501-aaaaaa"), std::string::npos);
  }
  EXPECT_EQ(store.runs().list().size(), 4u);
  EXPECT_EQ(store.runs().list(1).front().id, "20261121-081500");
  EXPECT_EQ(store.runs().list(0, "exactly a prefix").size(), 1u);
}

TEST_F(RunStoreTest, cache_gives_the_entry_of_a_key_and_the_newest_parts_of_a_step) {
  RunStore store(state);
  EXPECT_FALSE(store.cache().find("k1"));
  EXPECT_FALSE(store.cache().last_key_parts("digits", "train"));
  store.cache().add({"k1", "r1", "train", {{"m", "m", core::sha256("1"), false, 1}}}, "digits",
                    {{"command", "a"}, {"image", "x"}});
  store.cache().add({"k2", "r2", "train", {}}, "digits", {{"command", "b"}});
  store.cache().add({"k3", "r3", "train", {}}, "other", {{"command", "c"}});
  EXPECT_EQ(store.cache().find("k1")->run, "r1");
  EXPECT_EQ(store.cache().find("k1")->outputs.at(0).digest, core::sha256("1"));
  EXPECT_EQ(store.cache().last_key_parts("digits", "train")->first, "r2");
  EXPECT_EQ(store.cache().last_key_parts("digits", "train")->second.at(0).value, "b");
  store.cache().add({"k1", "r4", "train", {}}, "digits", {{"command", "a"}});
  EXPECT_EQ(store.cache().last_key_parts("digits", "train")->first, "r4")
      << "a key that succeeded again is the newest";
  store.cache().remove("k1");
  EXPECT_FALSE(store.cache().find("k1"));
  EXPECT_EQ(store.cache().last_key_parts("digits", "train")->first, "r2");
}

TEST_F(RunStoreTest, the_right_to_write_is_checked_before_each_commit) {
  RunStore store(folder.path());
  int checks = 0;
  store.before_commit([&] { ++checks; });
  store.runs().add(run_record("r1"));
  EXPECT_EQ(checks, 1);
  store.transaction([&] {
    store.runs().put_step(step_record("r1", "a"));
    store.runs().put_step(step_record("r1", "b"));
  });
  EXPECT_EQ(checks, 2);
  store.before_commit({});
  store.runs().put_step(step_record("r1", "c"));
  EXPECT_EQ(checks, 2);
}

TEST_F(RunStoreTest, transaction_is_all_or_nothing) {
  RunStore store(state);
  EXPECT_THROW(store.transaction([&] {
    store.runs().add(run_record("r1"));
    store.transaction([&] { store.runs().put_step(step_record("r1", "a")); });
    throw std::runtime_error("half-way");
  }),
               std::runtime_error);
  EXPECT_FALSE(store.runs().find("r1"));
  store.transaction([&] { store.runs().add(run_record("r2")); });
  EXPECT_TRUE(RunStore(state).runs().find("r2"));
}

TEST_F(RunStoreTest, run_that_reused_everything_has_the_steps_of_the_other_run_and_inherits_them) {
  RunStore store(state);
  for (const auto* id : {"r1", "r2", "r3"}) {
    auto run = run_record(id);
    store.runs().add(run);
    run.status = RunStatus::succeeded;
    if (run.id != "r1") run.same_as = "r1";
    store.runs().finish(run);
  }
  store.runs().put_step(step_record("r1", "a"));
  const auto check = [&](const std::string& run) {
    const auto steps = store.runs().steps(run);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].run, run);
    EXPECT_EQ(steps[0].status, StepStatus::cached);
    EXPECT_EQ(steps[0].reused_from, "r1");
    EXPECT_EQ(steps[0].outputs.size(), 2u);
  };
  check("r2");
  store.remove_run("r1", true);
  check("r2");
  check("r3");
  store.remove_run("r2", true);
  check("r3");
}

TEST_F(RunStoreTest, removed_run_takes_its_steps_logs_and_cache_entries_along) {
  RunStore store(state);
  for (const auto* id : {"r1", "r2"}) {
    auto run = run_record(id);
    run.status = RunStatus::succeeded;
    store.runs().add(run);
    store.runs().put_step(step_record(id, std::string("a") + id));
    store.attempts().put({.run = id, .step = "a"});
    store.cache().add({std::string("key") + id, id, "a", {{"o", "o", core::sha256(id), false, 1}}},
                      "digits", {});
    fs::create_directories(state / "logs" / id);
    std::ofstream(store.paths().log_file(std::string(id) + "/a.log")) << "text";
  }
  EXPECT_EQ(store.referenced_artifacts().size(), 6u);
  store.remove_run("r1", false);
  EXPECT_FALSE(store.runs().find("r1"));
  EXPECT_TRUE(store.runs().steps("r1").empty());
  EXPECT_TRUE(store.attempts().list("r1", "a").empty());
  EXPECT_FALSE(store.cache().find("keyr1"));
  EXPECT_FALSE(fs::exists(state / "logs/r1"));
  EXPECT_TRUE(fs::exists(state / "logs/r2/a.log"));
  EXPECT_EQ(store.referenced_artifacts().size(), 3u);
  store.remove_run("r2", true);
  EXPECT_TRUE(store.cache().find("keyr2"));
  EXPECT_EQ(store.referenced_artifacts().size(), 1u);
}

TEST_F(RunStoreTest, log_stays_below_its_folder) {
  RunStore store(state);
  for (const auto* name : {"", "/etc/passwd", "../pipe.db", "a/../../pipe.db", ".."})
    EXPECT_THROW(store.paths().log_file(name), core::EnvironmentError) << name;
  EXPECT_EQ(store.paths().log_file("r1/train.1.log"), state / "logs/r1/train.1.log");
}

TEST_F(RunStoreTest, run_that_is_driven_elsewhere_is_dead_only_by_its_lease) {
  RunStore store(state);
  auto run = run_record("far");
  run.driver = {{}, {"la'b", "ml", "pipe-driver-1"}};
  store.runs().add(run);
  store.key_values().put(detached_kind, "far", "{}");
  std::filesystem::create_directories(store.paths().detached_folder("far"));
  EXPECT_EQ(store.runs().find("far")->driver.lease, run.driver.lease);
  EXPECT_TRUE(store.runs().mark_dead().empty());
  ASSERT_EQ(store.runs().mark_dead("far").size(), 1u);
  EXPECT_EQ(store.runs().find("far")->status, RunStatus::interrupted);
  EXPECT_EQ(store.runs().find("far")->driver.lease, run.driver.lease);
  store.remove_run("far", false);
  EXPECT_FALSE(store.key_values().find(detached_kind, "far"));
  EXPECT_FALSE(std::filesystem::exists(store.paths().detached_folder("far")));
}

TEST_F(RunStoreTest, shared_store_never_has_a_write_ahead_log) {
  {
    RunStore store(state);
    store.runs().add(run_record("before"));
    RunStore other(state);
    other.runs().list();
    EXPECT_THROW(store.share(), core::EnvironmentError) << "the other still uses the log";
  }
  {
    RunStore store(state);
    store.share();
    store.runs().add(run_record("after"));
  }
  EXPECT_FALSE(std::filesystem::exists(state / "pipe.db-wal"));
  RunStore store(state), other(state);
  store.runs().add(run_record("last"));
  EXPECT_EQ(other.runs().list().size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(state / "pipe.db-wal"));
}

TEST_F(RunStoreTest, run_whose_driver_died_becomes_interrupted) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      RunStore store(state);
      store.runs().add(run_record("dead"));
      store.runs().put_step(step_record("dead", "a", StepStatus::running));
      store.runs().put_step(step_record("dead", "b", StepStatus::succeeded));
      if (::write(ready[1], "x", 1) == 1) ::pause();
    } catch (const std::exception&) {
    }
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  RunStore store(state);
  store.runs().add(run_record("mine"));
  EXPECT_TRUE(store.runs().mark_dead().empty());
  ::kill(child, SIGKILL);
  // A killed child is a zombie until wait_for(); a zombie counts as dead.
  std::vector<RunRecord> dead;
  for (int i = 0; i < 500 && dead.empty(); ++i) {
    dead = store.runs().mark_dead();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  wait_for(child);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].id, "dead");
  EXPECT_EQ(store.runs().find("dead")->status, RunStatus::interrupted);
  EXPECT_EQ(store.runs().steps("dead")[0].status, StepStatus::cancelled);
  EXPECT_EQ(store.runs().steps("dead")[1].status, StepStatus::succeeded);
  EXPECT_EQ(store.runs().find("mine")->status, RunStatus::running);
}

TEST_F(RunStoreTest, another_process_with_the_number_of_a_dead_one_is_not_alive) {
  auto self = ProcessId::self();
  EXPECT_TRUE(self.is_alive());
  self.started.back() = self.started.back() == '0' ? '1' : '0';
  EXPECT_FALSE(self.is_alive());
  EXPECT_FALSE(ProcessId{}.is_alive());
  auto rebooted = ProcessId::self();
  rebooted.started[0] = rebooted.started[0] == '0' ? '1' : '0';
  EXPECT_FALSE(rebooted.is_alive());
  EXPECT_FALSE(rebooted.is_of_this_boot());
}

TEST_F(RunStoreTest, processes_that_create_and_write_at_once_never_see_a_lock) {
  constexpr int processes = 6, rounds = 60;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      int result = 1;
      try {
        for (int round = 0; round < rounds; ++round) {
          RunStore store(state);  // opened, migrated, checkpointed and closed all the time
          const auto id = std::to_string(i) + "-" + std::to_string(round);
          store.transaction([&] {
            store.runs().add(run_record(id));
            store.runs().put_step(step_record(id, "a"));
          });
          store.runs().put_step(step_record(id, "b"));
          store.key_values().put("k", "shared", id);
          if (store.runs().steps(id).size() != 2) throw std::runtime_error("lost");
        }
        result = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(result);
    }
  }
  for (const auto child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(RunStore(state).runs().list().size(), std::size_t{processes * rounds});
  EXPECT_EQ(sql_of(database, "PRAGMA integrity_check"), "ok");
}

TEST_F(RunStoreTest, newer_and_foreign_databases_are_refused_and_not_changed) {
  fs::create_directory(state);
  const auto expect = [&](const std::string& text) {
    try {
      RunStore store(state);
      ADD_FAILURE() << text;
    } catch (const core::EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_FALSE(error.advice().empty());
    }
  };
  {
    RunStore store(state);
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, "pipe-checked"),
              SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, "PRAGMA user_version = 99", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(handle);
  }
  expect("newer version");
  fs::remove(database);
  sql_of(database, "CREATE TABLE theirs (x)");
  expect("another program");
  EXPECT_EQ(sql_of(database, "SELECT group_concat(name) FROM sqlite_master"), "theirs");
}

TEST_F(RunStoreTest, a_database_of_the_third_version_opens_and_shows_its_runs) {
  {
    RunStore store(state);
    store.runs().add(run_record("r"));
    store.runs().put_step(step_record("r", "a"));
    store.attempts().put({.run = "r", .step = "a", .log = "r/a.1.log"});
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, "pipe-checked"),
              SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(
                  handle,
                  "ALTER TABLE attempts DROP COLUMN failure; ALTER TABLE steps DROP COLUMN "
                  "failure; ALTER TABLE attempts DROP COLUMN usage; ALTER TABLE runs "
                  "DROP COLUMN note; DROP TABLE metrics; DROP TABLE tasks; PRAGMA user_version = 3",
                  nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(handle);
  }
  RunStore store(state);
  ASSERT_EQ(store.runs().list().size(), 1u);
  EXPECT_EQ(store.runs().list()[0].note, "");
  ASSERT_EQ(store.attempts().list("r", "a").size(), 1u);
  EXPECT_EQ(store.attempts().list("r", "a")[0].usage, core::Usage());
  EXPECT_TRUE(store.metrics().list("r").empty());
  store.metrics().add_points({.run = "r", .step = "a", .name = "loss", .attempt = 1}, 0,
                             std::vector<MetricPoint>{{0.5, 1, {}}});
  EXPECT_EQ(store.metrics().list("r").size(), 1u);
}

TEST_F(RunStoreTest, a_database_of_the_first_version_is_brought_up_to_date_and_keeps_its_runs) {
  {
    RunStore store(state);
    store.runs().add(run_record("r"));
    store.attempts().put({.run = "r", .step = "a", .log = "r/a.1.log"});
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, "pipe-checked"),
              SQLITE_OK);
    EXPECT_EQ(
        sqlite3_exec(handle,
                     "ALTER TABLE attempts DROP COLUMN failure; ALTER TABLE steps DROP COLUMN "
                     "failure; ALTER TABLE attempts DROP COLUMN gpus; ALTER TABLE runs DROP COLUMN "
                     "tags; ALTER TABLE attempts DROP COLUMN usage; ALTER TABLE runs DROP "
                     "COLUMN note; DROP TABLE metrics; DROP TABLE tasks; PRAGMA "
                     "user_version = 1",
                     nullptr, nullptr, nullptr),
        SQLITE_OK);
    sqlite3_close(handle);
  }
  for (int times = 0; times < 2; ++times) {
    RunStore store(state);
    ASSERT_EQ(store.attempts().list("r", "a").size(), 1u);
    EXPECT_EQ(store.attempts().list("r", "a")[0].log, "r/a.1.log");
    EXPECT_TRUE(store.attempts().list("r", "a")[0].gpus.empty());
    store.attempts().put({.run = "r",
                          .step = "b",
                          .log = "r/b.1.log",
                          .gpus = {{"GPU-1", 1, "V100"}, {"MIG-2", 0, "A100 1g.5gb", 2}}});
    ASSERT_EQ(store.attempts().list("r", "b").at(0).gpus.size(), 2u);
    EXPECT_EQ(store.attempts().list("r", "b")[0].gpus[0].uuid, "GPU-1");
    EXPECT_EQ(store.attempts().list("r", "b")[0].gpus[0].index, 1u);
    EXPECT_FALSE(store.attempts().list("r", "b")[0].gpus[0].slice);
    EXPECT_EQ(store.attempts().list("r", "b")[0].gpus[1].model, "A100 1g.5gb");
    EXPECT_EQ(store.attempts().list("r", "b")[0].gpus[1].slice, 2u);
  }
}

}  // namespace
}  // namespace pipeline::store
