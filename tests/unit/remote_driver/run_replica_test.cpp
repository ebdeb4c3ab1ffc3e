#include "remote_driver/run_replica.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "store/checked_vfs.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"
#include "support/tar.hpp"

namespace pipeline::remote_driver {
namespace {

namespace fs = std::filesystem;
using store::RunStore;
using test::run_task;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr auto id = "7f3a";
constexpr async::RetryPolicy hasty{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2};

/// `home` is the state of who began the run, `there` that of a driver.
class ASavedRun : public test::BucketTest {
 protected:
  enum class Kind { bucket, folder };
  explicit ASavedRun(Kind kind) : artifacts(loop, settings_of(kind), hasty) {
    store::RunRecord run{.id = id,
                         .pipeline = "digits",
                         .orchestrator = "kubernetes",
                         .file = "/home/ann/pipeline.yaml",
                         .parameters = "{}"};
    run.driver.lease = {"lab", "ml", "pipe-driver"};
    run.steps = 2;
    home.runs().add(run);
    for (const auto* step : {"load", "train"})
      home.runs().put_step({.run = id, .name = step, .parameters = "{}"});
    home.key_values().put(store::invocation_kind, id, "{}");
    home.key_values().put(store::invocation_kind, "another run", "{}");
    core::write_file_atomically(files / "pipeline.yaml", "name: digits\n");
    core::make_folders(files / "src");
    core::write_file_atomically(files / "src/train.py", "print()\n");
    run_task(loop, RunReplica(artifacts, id).upload_all(home, files));
  }
  bool take_over(RunReplica& bucket, RunStore& store) {
    return run_task(loop, bucket.take_over(store, store.paths().detached_folder(id)));
  }
  void log(RunStore& store, const std::string& name, const std::string& text) {
    core::make_folders(store.paths().log_file(id));
    core::write_file_atomically(store.paths().log_file(std::string(id) + "/" + name), text);
  }
  std::string log_at_home(const std::string& name) {
    return core::read_file(home.paths().log_file(std::string(id) + "/" + name));
  }
  void end(RunStore& store) {
    auto run = *store.runs().find(id);
    run.status = RunStatus::succeeded;
    store.runs().finish(run);
  }

  core::TemporaryFolder folder;
  const fs::path files = [this] {
    core::make_folders(folder.path() / "files");
    return folder.path() / "files";
  }();
  blobs::RemoteArtifacts artifacts;
  RunStore home{folder.path() / "home"}, there{folder.path() / "there"};
  RunReplica driver{artifacts, id}, asker{artifacts, id};

 private:
  settings::RemoteStoreSettings settings_of(Kind kind) const {
    if (kind == Kind::bucket) return settings();
    core::make_folders(folder.path() / "shared");
    return {"file://" + (folder.path() / "shared").string(), {}};
  }
};

class ARunInABucket : public ASavedRun {
 protected:
  ARunInABucket() : ASavedRun(Kind::bucket) {}
};

/// For true in a shared folder, for false in a bucket.
class ARunInAStore : public ASavedRun, public testing::WithParamInterface<bool> {
 protected:
  ARunInAStore() : ASavedRun(GetParam() ? Kind::folder : Kind::bucket) {}
};
INSTANTIATE_TEST_SUITE_P(Stores, ARunInAStore, testing::Bool());

TEST_P(ARunInAStore, that_does_not_exist_there_is_not_taken_over) {
  RunReplica other(artifacts, "ffff");
  EXPECT_FALSE(run_task(loop, other.take_over(there, folder.path() / "nothing")));
  EXPECT_THAT(there.runs().list(), IsEmpty());
  run_task(loop, other.download(home));
  run_task(loop, other.remove());
}

TEST_P(ARunInAStore, with_more_files_than_a_driver_fetches_is_refused_before_they_are_read) {
  const auto large = folder.path() / "large";
  core::make_folders(large);
  core::write_file_atomically(large / "one", "1");
  core::write_file_atomically(large / "weights", "");
  fs::resize_file(large / "weights", std::uintmax_t{64} << 30);  // More holes would be refused.
  try {
    run_task(loop, RunReplica(artifacts, "ffff").upload_all(home, large));
    ADD_FAILURE() << "the folder was uploaded";
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the files of run ffff have"), HasSubstr("64")));
  }
}

TEST_P(ARunInAStore, is_found_by_its_driver_with_its_files_and_without_other_runs) {
  ASSERT_TRUE(take_over(driver, there));
  EXPECT_EQ(there.runs().find(id)->driver.lease.name, "pipe-driver");
  EXPECT_THAT(there.runs().steps(id), SizeIs(2));
  EXPECT_EQ(there.key_values().find(store::invocation_kind, id), "{}");
  EXPECT_EQ(there.key_values().find(store::invocation_kind, "another run"), std::nullopt);
  EXPECT_EQ(core::read_file(there.paths().detached_folder(id) / "src/train.py"), "print()\n");
}

TEST_P(ARunInAStore, is_seen_at_home_as_far_as_it_has_been_saved) {
  ASSERT_TRUE(take_over(driver, there));
  there.runs().put_step({.run = id,
                         .name = "load",
                         .status = StepStatus::succeeded,
                         .key = "k",
                         .attempts = 1,
                         .parameters = "{}"});
  there.attempts().put({.run = id, .step = "load", .exit_code = 0, .log = "7f3a/load.1.log"});
  log(there, "load.1.log", "one\ntwo\n");
  run_task(loop, asker.download(home));
  EXPECT_EQ(home.runs().steps(id).at(0).status, StepStatus::pending);
  run_task(loop, driver.save(there));
  run_task(loop, asker.download(home));
  EXPECT_EQ(home.runs().steps(id).at(0).status, StepStatus::succeeded);
  EXPECT_EQ(home.runs().steps(id).at(1).status, StepStatus::pending);
  EXPECT_EQ(home.attempts().list(id, "load").at(0).exit_code, 0);
  EXPECT_EQ(log_at_home("load.1.log"), "one\ntwo\n");
  EXPECT_EQ(home.runs().find(id)->file, "/home/ann/pipeline.yaml");
  EXPECT_EQ(home.key_values().find(store::invocation_kind, "another run"), "{}");
}

TEST_F(ARunInABucket, costs_one_request_where_nothing_is_new) {
  ASSERT_TRUE(take_over(driver, there));
  run_task(loop, driver.save(there));
  run_task(loop, asker.download(home));
  server.asked.clear();
  run_task(loop, asker.download(home));
  EXPECT_THAT(server.asked, ElementsAre("GET /team/pipe/drivers/7f3a/head.json"));
  server.asked.clear();
  run_task(loop, RunReplica(artifacts, id).download(home));  // another process
  EXPECT_THAT(server.asked, SizeIs(1));
  server.asked.clear();
  run_task(loop, driver.save(there));
  EXPECT_THAT(server.asked, IsEmpty());
}

TEST_F(ARunInABucket, brings_only_the_new_part_of_a_log) {
  ASSERT_TRUE(take_over(driver, there));
  log(there, "load.1.log", "");
  run_task(loop, driver.save(there));
  run_task(loop, asker.download(home));
  EXPECT_EQ(log_at_home("load.1.log"), "") << "the log exists, and is empty";
  log(there, "load.1.log", "one\n");
  run_task(loop, driver.save(there));
  run_task(loop, asker.download(home));
  EXPECT_EQ(log_at_home("load.1.log"), "one\n");
  log(there, "load.1.log", "one\ntwo\n");
  log(there, "train.1.log", "begun\n");
  run_task(loop, driver.save(there));
  server.asked.clear();
  run_task(loop, RunReplica(artifacts, id).download(home));
  EXPECT_EQ(log_at_home("load.1.log"), "one\ntwo\n");
  EXPECT_EQ(log_at_home("train.1.log"), "begun\n");
  EXPECT_THAT(server.asked, SizeIs(4)) << "the head, twice; the store; one object for both logs";
}

TEST_P(ARunInAStore, goes_on_by_another_driver_where_the_last_one_had_saved_it) {
  ASSERT_TRUE(take_over(driver, there));
  log(there, "load.1.log", "one\ntwo\n");
  log(there, "train.1.log", "be");
  there.runs().put_step({.run = id,
                         .name = "load",
                         .status = StepStatus::succeeded,
                         .key = "k",
                         .attempts = 1,
                         .parameters = "{}"});
  run_task(loop, driver.save(there));
  RunStore next(folder.path() / "next");
  RunReplica second(artifacts, id);
  ASSERT_TRUE(take_over(second, next));
  EXPECT_EQ(next.runs().steps(id).at(0).status, StepStatus::succeeded);
  log(next, "train.1.log", "begun\n");  // read once more from its beginning
  end(next);
  run_task(loop, second.save(next));
  run_task(loop, asker.download(home));
  EXPECT_EQ(home.runs().find(id)->status, RunStatus::succeeded);
  EXPECT_EQ(log_at_home("load.1.log"), "one\ntwo\n");
  EXPECT_EQ(log_at_home("train.1.log"), "begun\n");
}

TEST_F(ARunInABucket, is_not_overwritten_by_a_driver_that_wakes_after_another_took_over) {
  ASSERT_TRUE(take_over(driver, there));
  run_task(loop, driver.save(there));
  RunStore next(folder.path() / "next");
  RunReplica second(artifacts, id);
  ASSERT_TRUE(take_over(second, next));
  // Its look at the Lease was before it was suspended.
  there.runs().put_step(
      {.run = id, .name = "load", .status = StepStatus::failed, .parameters = "{}"});
  log(there, "load.1.log", "of the first driver\n");
  const auto before = objects["/team/pipe/drivers/7f3a/head.json"];
  try {
    run_task(loop, driver.save(there));
    FAIL() << "the overwrite was not refused";
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has another driver by now"));
  }
  EXPECT_EQ(objects["/team/pipe/drivers/7f3a/head.json"], before);
  next.runs().put_step(
      {.run = id, .name = "load", .status = StepStatus::succeeded, .parameters = "{}"});
  run_task(loop, second.save(next));
  run_task(loop, asker.download(home));
  EXPECT_EQ(home.runs().steps(id).at(0).status, StepStatus::succeeded);
  EXPECT_FALSE(fs::exists(home.paths().log_file(std::string(id) + "/load.1.log")));
}

TEST_F(ARunInABucket, is_saved_by_its_driver_though_the_store_of_the_last_one_arrives_late) {
  ASSERT_TRUE(take_over(driver, there));
  there.runs().put_step(
      {.run = id, .name = "load", .status = StepStatus::failed, .parameters = "{}"});
  run_task(loop, driver.save(there));
  std::string late;  // Its head was written before the pause, and this object after it.
  for (const auto& [name, content] : objects)
    if (name.find("/pipe-") != name.npos) late = name;
  const auto content = objects.at(late);
  RunStore next(folder.path() / "next");
  RunReplica second(artifacts, id);
  ASSERT_TRUE(take_over(second, next));
  next.runs().put_step(
      {.run = id, .name = "load", .status = StepStatus::succeeded, .parameters = "{}"});
  run_task(loop, second.save(next));
  objects[late] = content;
  run_task(loop, asker.download(home));
  EXPECT_EQ(home.runs().steps(id).at(0).status, StepStatus::succeeded);
}

TEST_F(ARunInABucket, is_taken_over_as_it_is_when_its_earlier_driver_saves_meanwhile) {
  ASSERT_TRUE(take_over(driver, there));
  RunStore next(folder.path() / "next");
  RunReplica second(artifacts, id);
  std::optional<bool> taken;
  bool is_saved = false;
  asio::co_spawn(loop, second.take_over(next, next.paths().detached_folder(id)),
                 [&](const std::exception_ptr& error, bool done) {
                   if (!error) taken = done;
                 });
  // Runs as soon as the successor has read the head.
  const auto reads = server.asked.size();
  while (server.asked.size() == reads) loop.run_one();
  there.runs().put_step(
      {.run = id, .name = "load", .status = StepStatus::succeeded, .parameters = "{}"});
  asio::co_spawn(loop, driver.save(there),
                 [&](const std::exception_ptr& error) { is_saved = !error; });
  while (!taken) loop.run_one();
  for (int i = 0; i < 100 && !is_saved; ++i) loop.run_for(std::chrono::milliseconds(10));
  const auto status = next.runs().steps(id).at(0).status;
  EXPECT_EQ(status, is_saved ? StepStatus::succeeded : StepStatus::pending)
      << "either the save counts and the successor has the result, or the save is refused";
}

TEST_F(ARunInABucket, is_saved_when_the_answer_to_a_write_is_lost) {
  ASSERT_TRUE(take_over(driver, there));
  there.runs().put_step(
      {.run = id, .name = "load", .status = StepStatus::succeeded, .parameters = "{}"});
  loses_answer = true;
  run_task(loop, driver.save(there));
  EXPECT_FALSE(loses_answer);
  run_task(loop, asker.download(home));
  EXPECT_EQ(home.runs().steps(id).at(0).status, StepStatus::succeeded);
}

TEST_F(ARunInABucket, is_not_changed_by_a_process_that_only_reads_it) {
  ASSERT_TRUE(take_over(driver, there));
  const auto before = objects;
  RunStore other(folder.path() / "other");
  ASSERT_TRUE(
      run_task(loop, RunReplica(artifacts, id).fetch(other, other.paths().detached_folder(id))));
  EXPECT_EQ(objects, before);
  run_task(loop, driver.save(there));
}

TEST_F(ARunInABucket, leaves_nothing_there_once_it_is_removed) {
  ASSERT_TRUE(take_over(driver, there));
  log(there, "load.1.log", "one\n");
  run_task(loop, driver.save(there));
  run_task(loop, asker.remove());
  std::vector<std::string> names;
  for (const auto& [name, content] : objects) names.push_back(name);
  EXPECT_THAT(names, AllOf(SizeIs(1), Each(StartsWith("/team/pipe/artifacts/"))))
      << "the run's files may be those of others, too";
  EXPECT_FALSE(take_over(driver, there));
}

TEST_F(ARunInABucket, is_removed_by_the_list_of_objects_and_not_by_its_head) {
  ASSERT_TRUE(take_over(driver, there));
  for (auto& [name, content] : objects)
    if (name.ends_with("/head.json"))
      content = R"({"format": 1, "saved": 1, "files": "", "logs": [["a", 9999999]]})";
  server.asked.clear();
  run_task(loop, asker.remove());
  EXPECT_THAT(server.asked, SizeIs(testing::Le(8U)));
  EXPECT_EQ(objects.size(), 1U) << "the run's files stay";
}

TEST_F(ARunInABucket, is_not_read_from_invalid_objects) {
  for (const auto* text :
       {"", "[]", R"({"format": 1})", R"({"format": 1, "saved": "x", "files": "", "logs": []})",
        R"({"format": 1, "saved": 1e91, "files": "", "logs": []})",
        R"({"format": 1, "saved": 1, "files": "", "logs": [["a", -1]]})"}) {
    objects["/team/pipe/drivers/7f3a/head.json"] = text;
    EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError) << text;
  }
  objects["/team/pipe/drivers/7f3a/head.json"] = R"({"format": 2})";
  try {
    run_task(loop, asker.download(home));
    FAIL() << "the replica of another version was accepted";
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another version of pipe"));
  }
}

TEST_F(ARunInABucket, is_not_taken_over_with_files_that_are_not_the_ones_handed_over) {
  for (auto& [name, content] : objects)
    if (name.ends_with(".tar"))
      content = test::tar::entry('0', "./pipeline.yaml", "name: other\n") + test::tar::end;
  EXPECT_THROW(take_over(driver, there), core::EnvironmentError);
  EXPECT_FALSE(fs::exists(there.paths().detached_folder(id)));
  EXPECT_TRUE(fs::is_empty(there.paths().detached_folder(id).parent_path()));
}

TEST_F(ARunInABucket, is_not_taken_over_with_other_files_that_its_head_names) {
  const auto files_in_head = [this] {
    const auto& head = objects.at("/team/pipe/drivers/7f3a/head.json");
    return nlohmann::json::parse(head).at("files").get<std::string>();
  };
  const auto handed_over = files_in_head();
  core::write_file_atomically(files / "pipeline.yaml", "name: other\n");
  const auto others = run_task(loop, RunReplica(artifacts, id).upload_all(home, files));
  ASSERT_EQ(files_in_head(), others);
  ASSERT_NE(others, handed_over);
  RunReplica careful(artifacts, id, handed_over);
  EXPECT_THROW(take_over(careful, there), core::EnvironmentError);
  EXPECT_FALSE(fs::exists(there.paths().detached_folder(id)));
  RunReplica first(artifacts, id, others);
  EXPECT_TRUE(take_over(first, there));
}

TEST_P(ARunInAStore, has_no_outputs_whose_names_lead_elsewhere) {
  ASSERT_TRUE(take_over(driver, there));
  store::StepRecord step{.run = id,
                         .name = "load",
                         .status = StepStatus::succeeded,
                         .key = "k",
                         .attempts = 1,
                         .parameters = "{}"};
  step.outputs = {{"data", "../../x", core::sha256("x"), false, 1}};
  there.runs().put_step(step);
  run_task(loop, driver.save(there));
  EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError);
  for (const auto& each : home.runs().steps(id)) EXPECT_TRUE(each.outputs.empty()) << each.name;
}

TEST_F(ARunInABucket, is_not_read_if_the_usage_of_an_attempt_is_invalid) {
  ASSERT_TRUE(take_over(driver, there));
  there.attempts().put({.run = id, .step = "load", .exit_code = 0, .log = "7f3a/load.1.log"});
  run_task(loop, driver.save(there));
  for (auto& [name, content] : objects) {
    if (name.find("/pipe-") == name.npos) continue;
    const auto file = folder.path() / "pipe.db";
    core::write_file_atomically(file, content);
    sqlite3* database = nullptr;
    sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE, store::checked_vfs());
    EXPECT_EQ(sqlite3_exec(database, "UPDATE attempts SET usage = '{'", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(database);
    content = core::read_file(file);
  }
  EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError);
  EXPECT_THAT(home.attempts().list(id), IsEmpty());
  EXPECT_THAT(home.referenced_artifacts(), IsEmpty()) << "`pipe clean` makes this query";
}

TEST_F(ARunInABucket, has_logs_without_gaps) {
  ASSERT_TRUE(take_over(driver, there));
  log(there, "load.1.log", "one\n");
  run_task(loop, driver.save(there));
  for (auto& [name, content] : objects)
    if (name.find("/logs/") != name.npos) content = "[[\"load.1.log\", 1000000000000, 4]]\none\n";
  EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError);
  for (auto& [name, content] : objects)
    if (name.find("/logs/") != name.npos) content = "[[\"load.1.log\", 0, 1e91]]\none\n";
  EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError);
}

TEST_F(ARunInABucket, has_logs_that_stay_in_their_folder) {
  ASSERT_TRUE(take_over(driver, there));
  log(there, "load.1.log", "one\n");
  run_task(loop, driver.save(there));
  for (auto& [name, content] : objects)
    if (name.find("/logs/") != name.npos)
      content = R"([["../../x", 0, 4]])"
                "\none\n";
  EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError);
  EXPECT_FALSE(fs::exists(folder.path() / "home/x"));
}

TEST_F(ARunInABucket, writes_no_logs_through_a_link_in_the_state_folder) {
  ASSERT_TRUE(take_over(driver, there));
  log(there, "authorized_keys", "one\n");
  run_task(loop, driver.save(there));
  const auto elsewhere = folder.path() / "elsewhere";
  core::make_folders(elsewhere / id);
  const auto logs = folder.path() / "home/logs";
  for (const auto& link : {logs, logs / id}) {
    core::remove_tree(logs);
    core::make_folders(link.parent_path());
    fs::create_directory_symlink(link == logs ? elsewhere : elsewhere / id, link);
    EXPECT_THROW(run_task(loop, asker.download(home)), core::EnvironmentError) << link;
    EXPECT_TRUE(fs::is_empty(elsewhere / id)) << link;
  }
}

}  // namespace
}  // namespace pipeline::remote_driver
