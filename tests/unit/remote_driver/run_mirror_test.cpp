#include "remote_driver/run_mirror.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sqlite3.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/checked_vfs.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::remote_driver {
namespace {

using store::RunStore;
using test::run_task;

/// A bucket that can also be listed, with replicas of the runs `a` and `b`.
class AMirror : public test::BucketTest {
 protected:
  AMirror() {
    for (const auto* id : {"a", "b"}) save(id, RunStatus::running);
    core::make_folders(folder.path() / "files");
  }
  void save(const std::string& id, RunStatus status) {
    RunStore driver(folder.path() / ("driver-" + id));
    store::RunRecord run{.id = id,
                         .pipeline = "digits",
                         .orchestrator = "kubernetes",
                         .file = "f",
                         .parameters = "{}"};
    run.driver.lease = {"lab", "ml", "pipe-driver"};
    run.status = status;
    if (!driver.runs().find(id))
      driver.runs().add(run);
    else
      driver.runs().finish(run);
    driver.runs().put_step({.run = id, .name = "load", .parameters = "{}"});
    core::make_folders(driver.paths().log_file(id));
    core::write_file_atomically(driver.paths().log_file(id + "/load.1.log"), "line\n");
    auto& replica = replicas.try_emplace(id, artifacts, id).first->second;
    if (is_first.insert(id).second) {
      core::make_folders(folder.path() / "files");
      run_task(loop, replica.upload_all(driver, folder.path() / "files"));
      RunStore elsewhere(folder.path() / ("pod-" + id));
      run_task(loop, replica.take_over(elsewhere, elsewhere.paths().detached_folder(id)));
    }
    run_task(loop, replica.save(driver));
  }

  core::TemporaryFolder folder;
  std::set<std::string> is_first;
  blobs::RemoteArtifacts artifacts{
      loop, settings(),
      async::RetryPolicy{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2}};
  std::map<std::string, RunReplica> replicas;
  RunMirror mirror{loop, settings(), folder.path() / "mirror"};
  RunStore shown{folder.path() / "mirror"};  ///< As a server reads it.
};

TEST_F(AMirror, has_all_runs_of_the_bucket_and_what_their_drivers_save_later) {
  run_task(loop, mirror.refresh());
  ASSERT_EQ(shown.runs().list().size(), 2u);
  const auto run = *shown.runs().find("a");
  EXPECT_EQ(run.status, RunStatus::running);
  EXPECT_EQ(shown.drivers().liveness(run), store::Liveness::alive)
      << "the run's driver has just saved";
  EXPECT_EQ(shown.runs().steps("a").size(), 1u);
  EXPECT_EQ(core::read_file(shown.paths().log_file("a/load.1.log")), "line\n");
  save("a", RunStatus::succeeded);
  run_task(loop, mirror.refresh());
  EXPECT_EQ(shown.runs().find("a")->status, RunStatus::succeeded);
  EXPECT_EQ(shown.runs().find("b")->status, RunStatus::running);
}

TEST_F(AMirror, changes_nothing_in_the_bucket_and_keeps_what_is_gone_from_it) {
  const auto before = objects;
  run_task(loop, mirror.refresh());
  EXPECT_EQ(objects, before);
  run_task(loop, replicas.at("b").remove());
  run_task(loop, mirror.refresh());
  EXPECT_EQ(shown.runs().list().size(), 2u);
}

TEST_F(AMirror, of_a_bucket_that_refuses_reports_the_refusal) {
  refuses = true;
  EXPECT_THROW(run_task(loop, mirror.refresh()), core::EnvironmentError);
}

TEST_F(AMirror, passes_over_a_run_that_is_damaged) {
  for (auto& [name, content] : objects)
    if (name.ends_with("/a/head.json")) content = "{";
  run_task(loop, mirror.refresh());
  ASSERT_EQ(shown.runs().list().size(), 1u);
  EXPECT_EQ(shown.runs().list()[0].id, "b");
}

TEST_F(AMirror, passes_over_a_run_whose_store_has_endless_rows) {
  for (auto& [name, content] : objects) {
    if (name.find("/a/pipe-") == name.npos) continue;
    const core::TemporaryFolder other;
    const auto file = other.path() / "pipe.db";
    core::write_file_atomically(file, content);
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE, store::checked_vfs()),
              SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database,
                           "DROP TABLE metrics; CREATE VIEW metrics AS WITH RECURSIVE n(i) AS "
                           "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'a' AS run, 'load' AS "
                           "step, 1 AS attempt, 'x' AS name, i AS first, 1 AS count, x'00' AS "
                           "last, x'00' AS points FROM n",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(database);
    content = core::read_file(file);
  }
  run_task(loop, mirror.refresh());
  ASSERT_EQ(shown.runs().list().size(), 1u);
  EXPECT_EQ(shown.runs().list()[0].id, "b");
}

}  // namespace
}  // namespace pipeline::remote_driver
