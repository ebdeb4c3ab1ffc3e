#include "orchestrators/slurm/submitter.hpp"

#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "core/file.hpp"
#include "orchestrators/slurm/job_run.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using test::run_task;

/// A controller that is down for the first submissions.
class SilentAtFirst : public Client {
 public:
  explicit SilentAtFirst(int submissions) : Client(""), left_(submissions) {}
  async::Task<std::string> submit(std::vector<std::string>, std::string) override {
    if (left_-- > 0) throw SlurmError("sbatch failed: Unable to contact", {}, true);
    co_return "7";
  }
  async::Task<std::vector<QueuedJob>> jobs_named(std::string) override {
    co_return std::vector<QueuedJob>();
  }

 private:
  int left_;
};

struct SubmissionTold : testing::Test {
  SubmittedJob submit(std::chrono::milliseconds patience) {
    asio::io_context loop;
    SilentAtFirst client(1);
    Submitter submitter(client, folder.path(), "/agent", {}, patience);
    const auto paths = paths_of(folder.path(), "job");
    core::make_folders(paths.folder);
    Submission submission{.paths = paths,
                          .options = {},
                          .script = "true",
                          .is_stopped = [] { return false; },
                          .on_delay = [this](const std::string& why) { delays.push_back(why); }};
    return run_task(loop, submitter.submit(std::move(submission)));
  }
  core::TemporaryFolder folder;
  std::vector<std::string> delays;
};

TEST_F(SubmissionTold, a_long_submission_is_reported_with_its_reason) {
  EXPECT_EQ(submit(std::chrono::milliseconds(0)).id, "7");
  EXPECT_THAT(delays, testing::ElementsAre("sbatch failed: Unable to contact"));
}

TEST_F(SubmissionTold, a_short_silence_is_not_reported) {
  EXPECT_EQ(submit(std::chrono::hours(1)).id, "7");
  EXPECT_THAT(delays, testing::IsEmpty());
}

TEST(Submitter, a_percent_sign_in_a_path_is_not_a_pattern_of_slurms) {
  EXPECT_EQ(option_of_output("/lab%j/slurm.out"), "--output=/lab%%j/slurm.out");
}

/// A controller that is down.
class Silent : public Client {
 public:
  Silent() : Client("") {}
  async::Task<std::string> submit(std::vector<std::string>, std::string) override {
    has_tried = true;
    throw SlurmError("sbatch failed: Unable to contact", {}, true);
    co_return std::string();
  }
  async::Task<std::vector<QueuedJob>> jobs_named(std::string) override {
    throw SlurmError("squeue failed: Unable to contact", {}, true);
    co_return std::vector<QueuedJob>();
  }
  bool has_tried = false;
};

TEST(Submitter, a_stop_does_not_wait_for_a_controller_that_is_down) {
  const core::TemporaryFolder folder;
  asio::io_context loop;
  Silent client;
  Submitter submitter(client, folder.path(), "/agent", {});
  const auto paths = paths_of(folder.path(), "job");
  core::make_folders(paths.folder);
  Submission submission{.paths = paths,
                        .options = {},
                        .script = "true",
                        .is_stopped = [&client] { return client.has_tried; },
                        .on_delay = [](const std::string&) {}};
  EXPECT_EQ(run_task(loop, submitter.submit(std::move(submission))).id, "");
}

/// A controller that gives the user room for two jobs at a time: each question for jobs ends one.
class FewJobs : public Client {
 public:
  FewJobs() : Client("") {}
  async::Task<std::string> submit(std::vector<std::string> options, std::string) override {
    unsigned tasks = 1;
    for (const auto& option : options)
      if (option.starts_with("--array=0-"))
        tasks += static_cast<unsigned>(std::stoul(option.substr(10)));
    if (jobs_ + tasks > 2)
      throw SlurmError("sbatch failed: AssocMaxSubmitJobLimit; Batch job submission failed", {},
                       false);
    jobs_ += tasks;
    arrays.push_back(tasks);
    co_return std::to_string(arrays.size());
  }
  async::Task<std::vector<QueuedJob>> jobs_named(std::string) override {
    if (jobs_ > 0) --jobs_;
    co_return std::vector<QueuedJob>();
  }
  std::vector<unsigned> arrays;  ///< How many jobs each submission had.

 private:
  unsigned jobs_ = 0;
};

TEST(Submitter, an_array_above_the_limit_of_the_user_is_divided_and_the_rest_waits_for_room) {
  const core::TemporaryFolder folder;
  asio::io_context loop;
  FewJobs client;
  Submitter submitter(client, folder.path(), "/agent", {.max_array_size = 1000, .max_jobs = 10000});
  std::vector<SubmittedJob> jobs(5);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto paths = paths_of(folder.path(), "job" + std::to_string(i));
    core::make_folders(paths.folder);
    Submission submission{.paths = paths,
                          .options = {},
                          .script = "true",
                          .is_stopped = [] { return false; },
                          .on_delay = [](const std::string&) {}};
    asio::co_spawn(loop, submitter.submit(std::move(submission)),
                   [&jobs, i](std::exception_ptr error, SubmittedJob job) {
                     if (!error) jobs[i] = std::move(job);
                   });
  }
  loop.run();
  std::set<std::string> ids;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto paths = paths_of(folder.path(), "job" + std::to_string(i));
    ids.insert(jobs[i].id);
    EXPECT_EQ(recorded_job(paths).id, jobs[i].id);
  }
  EXPECT_EQ(ids.size(), jobs.size());
  EXPECT_FALSE(ids.contains(""));
  EXPECT_EQ(std::accumulate(client.arrays.begin(), client.arrays.end(), 0U), jobs.size());
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
