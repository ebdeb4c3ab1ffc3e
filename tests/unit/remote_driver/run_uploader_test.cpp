#include "remote_driver/run_uploader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::remote_driver {
namespace {

using store::RunStore;
using test::run_task;

constexpr auto uploaded = "7f3a";

class SavingTest : public test::BucketTest {
 protected:
  SavingTest() {
    store.runs().add(
        {.id = uploaded, .pipeline = "digits", .orchestrator = "kubernetes", .parameters = "{}"});
    store.runs().put_step({.run = uploaded, .name = "load", .parameters = "{}"});
    core::make_folders(folder.path() / "files");
    run_task(loop, RunReplica(artifacts, uploaded).upload_all(store, folder.path() / "files"));
    EXPECT_TRUE(run_task(loop, bucket.take_over(store, folder.path() / "files")));
  }
  void record(StepStatus status) {
    store.runs().put_step({.run = uploaded, .name = "load", .status = status, .parameters = "{}"});
  }
  StepStatus saved() {
    const core::TemporaryFolder elsewhere;
    RunStore found(elsewhere.path());
    run_task(loop, RunReplica(artifacts, uploaded).fetch(found, elsewhere.path() / "files"));
    return found.runs().steps(uploaded).at(0).status;
  }

  core::TemporaryFolder folder;
  RunStore store{folder.path() / "state"};
  blobs::RemoteArtifacts artifacts{
      loop, settings(),
      async::RetryPolicy{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2}};
  RunReplica bucket{artifacts, uploaded};
};

TEST_F(SavingTest, records_made_before_save_now_are_saved_when_it_returns) {
  RunUploader saving(loop, bucket, store);
  for (const auto status : {StepStatus::running, StepStatus::succeeded}) {
    record(status);
    run_task(loop, saving.save_now());
    EXPECT_EQ(saved(), status);
  }
  run_task(loop, saving.end());
}

TEST_F(SavingTest, records_that_nobody_waits_for_are_saved_too) {
  RunUploader saving(loop, bucket, store);
  record(StepStatus::running);
  for (int i = 0; i < 100 && saved() != StepStatus::running; ++i)
    loop.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(saved(), StepStatus::running);
  run_task(loop, saving.end());
}

TEST_F(SavingTest, the_runs_end_is_saved) {
  RunUploader saving(loop, bucket, store);
  record(StepStatus::failed);
  run_task(loop, saving.end());
  EXPECT_EQ(saved(), StepStatus::failed);
}

TEST_F(SavingTest, a_bucket_that_refuses_delays_nothing_and_is_reported_at_the_end) {
  RunUploader saving(loop, bucket, store);
  refuses = true;
  record(StepStatus::running);
  run_task(loop, saving.save_now());
  EXPECT_THROW(run_task(loop, saving.end()), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::remote_driver
