#include "orchestrators/slurm/submitter.hpp"

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
                          .on_delay = [this](const std::string& why) { told.push_back(why); }};
    return run_task(loop, submitter.submit(std::move(submission)));
  }
  core::TemporaryFolder folder;
  std::vector<std::string> told;
};

TEST_F(SubmissionTold, a_long_submission_is_reported_with_its_reason) {
  EXPECT_EQ(submit(std::chrono::milliseconds(0)).id, "7");
  EXPECT_THAT(told, testing::ElementsAre("sbatch failed: Unable to contact"));
}

TEST_F(SubmissionTold, a_short_silence_is_not_reported) {
  EXPECT_EQ(submit(std::chrono::hours(1)).id, "7");
  EXPECT_THAT(told, testing::IsEmpty());
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
