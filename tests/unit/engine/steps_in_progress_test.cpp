#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <sys/stat.h>

#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

constexpr int many = 1200;

/// Returns how many locks are held on the files of a folder.
int held_locks(const std::filesystem::path& folder) {
  std::set<std::string> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat status {};
    if (::lstat(file.path().c_str(), &status) == 0) files.insert(std::to_string(status.st_ino));
  }
  // `1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 0 0`
  int count = 0;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string word, file;
    for (int i = 0; i < 6 && words >> word; ++i) file = word;
    count += static_cast<int>(files.count(file.substr(file.rfind(':') + 1)));
  }
  return count;
}

class ManyReadySteps : public RunTest {
 protected:
  ManyReadySteps() {
    for (int i = 0; i < many; ++i) pipeline.steps.push_back(step("s" + std::to_string(i)));
    options.jobs = 2;
  }
  EngineOptions options;
};

TEST_F(ManyReadySteps, are_not_all_in_progress_at_a_time) {
  int most = 0;
  orchestrator.steps["s0"] =
      orchestrator.steps["s700"] = [&](const orchestrators::Attempt& attempt) {
        most = std::max(most, held_locks(folder.path() / "state"));
        return writes(attempt, "x");
      };
  const auto summary = run(options);
  EXPECT_EQ(summary.succeeded, std::size_t{many});
  EXPECT_GT(most, 400);
  EXPECT_LT(most, 600);
}

TEST_F(ManyReadySteps, are_skipped_when_one_fails_and_the_last_step_runs_all_the_same) {
  pipeline.execution_mode = ExecutionMode::fail_fast;
  pipeline.steps.push_back(step("last"));
  pipeline.steps.back().run_on = RunOn::always;
  for (int i = 0; i < many; ++i) pipeline.steps.back().after.push_back("s" + std::to_string(i));
  orchestrator.steps["s3"] = [](const orchestrators::Attempt&) { return fails_with(7); };
  const auto summary = run(options);
  EXPECT_EQ(summary.status, RunStatus::failed);
  EXPECT_EQ(summary.failed, 1u);
  EXPECT_EQ(status_of("last"), StepStatus::succeeded);
  EXPECT_EQ(status_of("s1199"), StepStatus::skipped);
  EXPECT_EQ(orchestrator.started["s1199"], 0);
}

}  // namespace
}  // namespace pipeline::engine
