// Cleanings of a remote store beside processes that use it: a shared folder, whose calls run on
// threads, so that the two meet in many orders.
#include "remote_cache/store_cleaning.hpp"

#include <algorithm>
#include <ctime>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/sleep.hpp"
#include "async/task_group.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "remote_cache/record.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::remote_cache {
namespace {

using namespace std::chrono_literals;
using blobs::RemoteArtifacts;
using test::run_task;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Disks of busy machines take a tenth of a second for each write.
// A virtual machine that stands still for half a lifetime meanwhile would lose its leases.
constexpr blobs::LeaseTimes quick{.renewal = 20ms, .lifetime = 1h, .max_removal = 30s};
constexpr blobs::LeaseTimes short_lived{.renewal = 20ms, .lifetime = 300ms, .max_removal = 30s};

std::string digest_of(const std::string& text) { return core::sha256(text).hex(); }
std::string artifact(const std::string& text) {
  return RemoteArtifacts::key_of(digest_of(text), false);
}

class ARemoteStore : public testing::Test {
 protected:
  ARemoteStore() { std::filesystem::create_directory(path); }

  settings::RemoteStoreSettings settings() const { return {"file://" + path.string(), {}}; }
  void put(const std::string& key, const std::string& text) {
    run_task(loop, remote.store().put(key, blobs::body_of(text)));
  }
  void put_large(const std::string& key, std::size_t size) {
    put(key, "");
    std::filesystem::resize_file(path / key, size);
  }
  std::string record_of(const std::vector<std::string>& artifacts) const {
    std::string outputs;
    for (const auto& each : artifacts)
      outputs += (outputs.empty() ? "" : ",") + std::string(R"({"name": "x", "file_name": "x", )") +
                 R"("kind": "file", "bytes": 1, "digest": ")" + digest_of(each) + R"("})";
    return R"({"format": 1, "run": "r", "outputs": [)" + outputs + "]}";
  }
  /// Writes a result, with its artifacts, of an age.
  void add_result(const std::string& name, const std::vector<std::string>& artifacts,
                  std::chrono::hours age = 100h) {
    for (const auto& each : artifacts) put(artifact(each), each);
    put("results/" + name + ".json", record_of(artifacts));
    make_older(age);
  }
  /// Gives an age to what has none yet.
  void make_older(std::chrono::hours age) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(path))
      if (file.is_regular_file() && aged.insert(file.path()).second)
        std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - age);
  }
  CleaningReport clean(CleaningPolicy policy, blobs::LeaseTimes times = quick) {
    policy.times = times;
    const auto note = [this](const std::string& text) { notes.push_back(text); };
    return run_task(loop, clean_store(remote.store(), names, std::move(policy), note, cancel));
  }
  std::vector<std::string> keys(const std::string& prefix = "") {
    return run_task(loop, remote.store().list(prefix));
  }

  asio::io_context loop;
  core::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "shared";
  store::ArtifactStore local_artifacts{folder.path() / "artifacts"};
  RemoteArtifacts remote{loop, settings()};
  RemoteNames names{remote, local_artifacts};
  core::CancelSource cancel;
  std::vector<std::string> notes;
  std::set<std::filesystem::path> aged;
};

TEST_F(ARemoteStore, keeps_artifacts_of_results_and_loses_the_others) {
  add_result("one", {"a", "b"});
  put(artifact("lonely"), "lonely");
  make_older(100h);
  put(artifact("young"), "young");
  const auto report = clean({});
  EXPECT_THAT(keys(), UnorderedElementsAre(artifact("a"), artifact("b"), artifact("young"),
                                           "results/one.json"));
  EXPECT_EQ(report.bytes, 6u);
  EXPECT_EQ(report.bytes_left, 7u);
}

TEST_F(ARemoteStore, loses_old_results_and_keeps_artifacts_that_younger_ones_share) {
  add_result("old", {"shared", "of_old"}, 1000h);
  add_result("new", {"shared", "of_new"}, 30h);
  clean({.older_than = 500h});
  EXPECT_THAT(keys(),
              UnorderedElementsAre(artifact("shared"), artifact("of_new"), "results/new.json"));
}

TEST_F(ARemoteStore, loses_its_oldest_results_above_a_budget) {
  for (int i = 0; i < 5; ++i)
    add_result("r" + std::to_string(i), {std::string(10, static_cast<char>('a' + i))},
               std::chrono::hours(500 - 10 * i));
  clean({.max_bytes = 25});
  EXPECT_THAT(keys("results/"), ElementsAre("results/r3.json", "results/r4.json"));
  EXPECT_EQ(keys("artifacts/").size(), 2u);
}

TEST_F(ARemoteStore, reports_how_much_it_cannot_free) {
  add_result("young", {std::string(100, 'x')}, 1h);
  clean({.max_bytes = 10});
  EXPECT_THAT(notes, ElementsAre(HasSubstr("artifacts of 100 B stay")));
  EXPECT_EQ(keys("results/").size(), 1u);
}

TEST_F(ARemoteStore, is_not_written_by_a_dry_run) {
  add_result("old", {"a"});
  put(artifact("lonely"), "lonely");
  put("runs/r/train.1/outputs/model", "half");
  make_older(1000h);
  const auto before = keys();
  const auto report = clean({.older_than = 50h, .is_dry_run = true});
  EXPECT_EQ(keys(), before);
  ASSERT_EQ(report.removed.size(), 3u);
  EXPECT_EQ(report.removed[1].kind, "artifacts");
  EXPECT_EQ(report.removed[1].bytes, 7u);
}

/// A pod that ends while the Job of its dead driver is removed may upload its report after the
/// files of its run were removed, for as long as its addresses are valid.
TEST_F(ARemoteStore, loses_what_pods_have_written_after_their_run_was_removed) {
  for (const auto* name : {"report.json", "question.json", "outputs/model"})
    put(std::string("runs/late/train.1/") + name, "x");
  put("runs/held/train.1/report.json", "x");
  put(artifact("sent to its digest"), "sent to its digest");
  make_older(200h);
  put("runs/young/train.1/report.json", "x");
  make_older(100h);
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("held", quick);
  EXPECT_FALSE(run_task(loop, driver.has(artifact("none"))));
  const auto report = clean({});
  run_task(loop, driver.release());
  EXPECT_THAT(keys(), UnorderedElementsAre("runs/held/train.1/report.json",
                                           "runs/young/train.1/report.json"));
  ASSERT_EQ(report.removed.size(), 2u);
  EXPECT_EQ(report.removed[1].name, "late");
  EXPECT_EQ(report.removed[1].bytes, 3u);
}

TEST_F(ARemoteStore, of_a_later_version_loses_nothing) {
  add_result("old", {"a"});
  put("results/later.json", R"({"format": 2})");
  put(artifact("lonely"), "lonely");
  make_older(1000h);
  const auto before = keys();
  try {
    clean({.older_than = 50h});
    ADD_FAILURE() << "cleaned";
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("results/later.json"));
    EXPECT_THAT(error.what(), HasSubstr("later version of pipe"));
  }
  EXPECT_EQ(keys(), before);
}

TEST_F(ARemoteStore, keeps_artifacts_that_the_caller_and_names_need) {
  put(artifact("kept"), "kept");
  const auto file = folder.path() / "file";
  core::write_file_atomically(file, "named");
  const auto stored = local_artifacts.take(file);
  run_task(loop,
           names.publish("prod",
                         {.run = "r", .step = "s", .output = {"x", "x", stored.digest, false, 5}}));
  make_older(1000h);
  const std::function<async::Task<std::set<std::string>>()> kept =
      []() -> async::Task<std::set<std::string>> { co_return std::set{artifact("kept")}; };
  clean({.kept = kept});
  EXPECT_THAT(keys("artifacts/"), UnorderedElementsAre(artifact("kept"), artifact("named")));
}

TEST_F(ARemoteStore, keeps_artifacts_that_a_process_has_leased) {
  put(artifact("used"), "used");
  put(artifact("lonely"), "lonely");
  make_older(1000h);
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", quick);
  EXPECT_TRUE(run_task(loop, driver.has(artifact("used"))));
  EXPECT_EQ(keys("leases/").size(), 1u);
  clean({});
  EXPECT_THAT(keys("artifacts/"), ElementsAre(artifact("used")));
  EXPECT_THAT(keys("cleanings/"), IsEmpty());
  run_task(loop, driver.release());
  EXPECT_THAT(keys("leases/"), IsEmpty());
  clean({});
  EXPECT_THAT(keys(), IsEmpty());
}

TEST_F(ARemoteStore, has_no_lease_of_a_process_whose_first_look_at_cleanings_failed) {
  std::filesystem::create_directory_symlink(path / "elsewhere", path / "cleanings");
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", quick);
  EXPECT_THROW(run_task(loop, driver.has(artifact("none"))), core::EnvironmentError);
  EXPECT_EQ(keys("leases/").size(), 1u);
  run_task(loop, driver.release());
  EXPECT_THAT(keys("leases/"), IsEmpty());
}

TEST_F(ARemoteStore, forgets_the_lease_of_a_driver_whose_run_another_continues) {
  put("leases/run-1.dead.json", R"({"owner": "run-1", "knows": [], "needs": []})");
  put("leases/run-10.alive.json", R"({"owner": "run-10", "knows": [], "needs": []})");
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", quick);
  EXPECT_FALSE(run_task(loop, driver.has(artifact("none"))));
  EXPECT_EQ(keys("leases/run-1.").size(), 1u);
  run_task(loop, driver.release());
  EXPECT_THAT(keys("leases/"), ElementsAre("leases/run-10.alive.json"));
}

TEST_F(ARemoteStore, does_not_wait_for_a_process_that_was_killed) {
  put(artifact("lonely"), "lonely");
  put("leases/dead.json", R"({"owner": "run-0", "knows": [], "needs": []})");
  make_older(1000h);
  clean({}, short_lived);
  EXPECT_THAT(keys(), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("waiting for the answer of 1 run that uses the store")));
}

TEST_F(ARemoteStore, can_be_cleaned_whatever_others_write_among_its_leases) {
  put(artifact("lonely"), "lonely");
  put_large("results/other.json", core::max_text_bytes + 1);
  put("leases/other", "");
  put("leases/run-1.x.json", "[");
  put("leases/run-2.x.json", R"({"owner": 7})");
  put_large("leases/run-3.x.json", core::max_text_bytes + 1);
  make_older(1000h);
  clean({}, short_lived);
  EXPECT_THAT(keys(), IsEmpty());
}

TEST_F(ARemoteStore, can_be_used_whatever_others_write_among_its_cleanings) {
  put(artifact("used"), "used");
  put(artifact("lonely"), "lonely");
  put("cleanings/a", "");
  put(blobs::keys_of_cleaning("b"), "[");
  put_large(blobs::keys_of_cleaning("c"), core::max_text_bytes + 1);
  make_older(1000h);
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", quick);
  EXPECT_TRUE(run_task(loop, driver.has(artifact("used"))));
  clean({});
  EXPECT_THAT(keys("artifacts/"), ElementsAre(artifact("used")));
  EXPECT_THAT(keys("cleanings/"), IsEmpty());
  run_task(loop, driver.release());
}

TEST_F(ARemoteStore, has_no_process_that_waits_for_a_cleaning_that_was_killed) {
  put(artifact("used"), "used");
  put(blobs::keys_of_cleaning("c"), R"({"keys": [")" + artifact("used") + R"("]})");
  put(blobs::end_of_cleaning("c"), "closed");
  make_older(1000h);
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", {.renewal = 20ms, .lifetime = 60s, .max_removal = 1h});
  EXPECT_TRUE(run_task(loop, driver.has(artifact("used"))));
  run_task(loop, driver.release());
}

TEST_F(ARemoteStore, that_is_cleaned_makes_a_late_process_wait_and_look_again) {
  put(artifact("gone"), "gone");
  put(blobs::keys_of_cleaning("c"), R"({"keys": [")" + artifact("gone") + R"("]})");
  put(blobs::end_of_cleaning("c"), "closed");
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", quick);
  const auto cleaner = [&]() -> async::Task<> {
    co_await async::sleep(50ms);
    for (const auto& key :
         {artifact("gone"), blobs::keys_of_cleaning("c"), blobs::end_of_cleaning("c")})
      co_await remote.store().remove(key);
  };
  bool is_there = true;
  const auto both = [&]() -> async::Task<> {
    async::TaskGroup group(loop.get_executor());
    group.spawn(cleaner());
    is_there = co_await driver.has(artifact("gone"));
    co_await group.join();
  };
  run_task(loop, both());
  EXPECT_FALSE(is_there);
  run_task(loop, driver.release());
}

TEST_F(ARemoteStore, is_checked_again_by_a_process_whose_lease_has_expired) {
  put(artifact("used"), "used");
  RemoteArtifacts driver{loop, settings()};
  driver.hold_for("run-1", short_lived);
  EXPECT_TRUE(run_task(loop, driver.has(artifact("used"))));
  std::this_thread::sleep_for(
      short_lived.lifetime);  // The loop stands still, as on a sleeping machine.
  run_task(loop, remote.store().remove(artifact("used")));
  EXPECT_TRUE(run_task(loop, driver.use(artifact("other"))));
  EXPECT_FALSE(run_task(loop, driver.has(artifact("used"))));
  run_task(loop, driver.release());
}

/// Several processes publish results with few artifacts in common, while others clean everything
/// that they may: nothing that a process relies on goes, and no result lacks an artifact.
TEST_F(ARemoteStore, loses_nothing_that_is_needed_in_any_order_of_events) {
  std::minstd_rand random(7);
  const auto number = [&](unsigned below) {
    return std::uniform_int_distribution<unsigned>(0, below - 1)(random);
  };
  std::size_t published = 0, cleaned = 0;
  std::vector<std::string> lost;
  const auto process = [&](unsigned name) -> async::Task<> {
    // On a busy machine fewer cleanings end meanwhile.
    for (unsigned round = 0; round < 6 || (cleaned <= 10 && round < 600); ++round) {
      RemoteArtifacts driver{loop, settings()};
      driver.hold_for("run-" + std::to_string(name), quick);
      std::vector<std::string> used;
      for (unsigned i = 0; i < 3; ++i) {
        const auto text = "artifact " + std::to_string(number(6));
        const auto key = artifact(text);
        const bool is_there = co_await driver.has(key);
        if (!is_there) {
          const auto file = folder.path() / (std::to_string(name) + "." + std::to_string(i));
          core::write_file_atomically(file, text);
          co_await driver.send(digest_of(text), file, nullptr);
        }
        used.push_back(text);
        co_await async::sleep(std::chrono::milliseconds(number(15)));
      }
      for (const auto& text : used) {
        const bool stays = co_await remote.store().has(artifact(text));
        if (!stays) lost.push_back(text);
      }
      auto record = blobs::body_of(record_of(used));
      co_await driver.store().put("results/" + std::to_string(number(4)) + ".json",
                                  std::move(record));
      ++published;
      co_await driver.release();
    }
  };
  bool is_done = false;
  const auto cleaning = [&]() -> async::Task<> {
    while (!is_done) {
      CleaningPolicy policy{.older_than = 0s, .min_age = -10s, .times = quick};
      if (number(2) == 0) policy.older_than.reset();
      const auto silent = [](const std::string&) {};
      const auto report = co_await clean_store(remote.store(), names, policy, silent, cancel);
      cleaned += report.removed.size();
      co_await async::sleep(std::chrono::milliseconds(number(10)));
    }
  };
  const auto all = [&]() -> async::Task<> {
    std::exception_ptr failed;
    const auto on_end = [&](const std::exception_ptr& error) {
      if (error) failed = error;
    };
    async::TaskGroup processes(loop.get_executor(), on_end), cleaners(loop.get_executor(), on_end);
    for (unsigned i = 0; i < 6; ++i) processes.spawn(process(i));
    for (unsigned i = 0; i < 2; ++i) cleaners.spawn(cleaning());
    co_await processes.join();
    is_done = true;
    co_await cleaners.join();
    if (failed) std::rethrow_exception(failed);
  };
  run_task(loop, all());
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_GE(published, 36u);
  EXPECT_GT(cleaned, 10u);
  for (const auto& key : keys("results/")) {
    const auto record = read_record(run_task(loop, remote.store().get_text(key)));
    for (const auto& output : record->outputs)
      EXPECT_TRUE(run_task(
          loop, remote.store().has(RemoteArtifacts::key_of(output.record.digest.hex(), false))))
          << key;
  }
  EXPECT_THAT(keys("leases/"), IsEmpty());
  EXPECT_THAT(keys("cleanings/"), IsEmpty());
}

class ABucketToClean : public test::BucketTest {
 protected:
  /// Adds an upload to the server's list, in the order of the keys.
  void upload(const std::string& key, const std::string& id, std::chrono::hours age) {
    const auto begun =
        std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() - age);
    const auto time = std::chrono::system_clock::to_time_t(begun);
    std::tm parts_of_time{};
    gmtime_r(&time, &parts_of_time);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &parts_of_time);
    open_uploads += "<Upload><Key>pipe/" + key + "</Key><UploadId>" + id +
                    "</UploadId><Initiated>" + text + "</Initiated></Upload>";
  }
  /// Returns the ids of the uploads that a cleaning has aborted.
  std::vector<std::string> aborted(bool is_dry_run) {
    RemoteNames names(bucket, artifacts);
    CleaningPolicy policy;
    policy.is_dry_run = is_dry_run;
    server.asked.clear();
    report = run_task(loop, clean_store(
                                bucket.store(), names, std::move(policy), [](auto&) {}, cancel));
    std::vector<std::string> ids;
    for (const auto& line : server.asked)
      if (const auto id = line.find("?uploadId="); line.starts_with("DELETE") && id != line.npos)
        ids.push_back(line.substr(id + 10));
    return ids;
  }

  core::TemporaryFolder folder;
  store::ArtifactStore artifacts{folder.path() / "artifacts"};
  blobs::RemoteArtifacts bucket{loop, settings()};
  core::CancelSource cancel;
  CleaningReport report;
};

TEST_F(ABucketToClean, has_no_abandoned_uploads_afterwards) {
  upload("artifacts/ab/c", "killed-driver", 200h);
  upload("artifacts/ab/d", "driver-or-pod", 100h);
  upload("runs/old/step.1/outputs/x", "dead-pod", 200h);
  upload("runs/held/step.1/outputs/x", "held", 200h);
  upload("runs/new/step.1/outputs/x", "pod", 100h);
  objects["/team/pipe/leases/held.1.json"] = R"({"run": "held"})";
  EXPECT_THAT(aborted(true), IsEmpty());
  ASSERT_EQ(report.removed.size(), 1u);
  EXPECT_EQ(report.removed[0].name, "2 unfinished uploads");
  EXPECT_THAT(aborted(false), UnorderedElementsAre("killed-driver", "dead-pod"));
}

TEST_F(ABucketToClean, loses_no_upload_whose_time_or_key_is_unknown) {
  open_uploads =
      "<Upload><Key>pipe/artifacts/ab/c</Key><UploadId>1</UploadId></Upload>"
      "<Upload><Key>other/artifacts/ab/c</Key><UploadId>2</UploadId><Initiated>"
      "2020-01-01T00:00:00Z</Initiated></Upload>";
  EXPECT_THAT(aborted(false), IsEmpty());
  EXPECT_THAT(report.removed, IsEmpty());
}

/// A cleaning reads the new results while others wait, and has a minute to remove what it may.
TEST_F(ABucketToClean, is_listed_once_for_all_new_results) {
  for (const char digit : {'1', '2', '3', '4', '5'})
    objects[std::string("/team/pipe/results/") + digit + ".json"] =
        R"({"format": 1, "run": "r", "outputs": []})";
  objects["/team/pipe/" + artifact("lonely")] = "lonely";
  RemoteNames names(bucket, artifacts);
  CleaningPolicy policy{.min_age = -10s};
  const auto silent = [](const std::string&) {};
  report = run_task(loop, clean_store(bucket.store(), names, std::move(policy), silent, cancel));
  EXPECT_FALSE(objects.contains("/team/pipe/" + artifact("lonely")));
  const auto is_list = [](const std::string& line) {
    return line.find("list-type=2") != line.npos && line.find("results") != line.npos;
  };
  EXPECT_EQ(std::ranges::count_if(server.asked, is_list), 2);
}

}  // namespace
}  // namespace pipeline::remote_cache
