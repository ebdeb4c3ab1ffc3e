#include "orchestrators/slurm/allocation.hpp"

#include <cstdlib>

#include <gmock/gmock.h>

#include "core/file.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using testing::ElementsAre;

TEST(Allocation, srun_gets_the_steps_resources_and_no_options_of_the_job) {
  const std::vector<std::string> options{
      "--job-name=n",       "--output=/s/out",   "--no-requeue", "--partition=gpu",
      "--comment=pipe:o:r", "--cpus-per-task=2", "--gres=gpu:1"};
  EXPECT_THAT(srun_command(options, "exec x"),
              ElementsAre("srun", "--exact", "--quiet", "--input=none", "--mpi=none",
                          "--job-name=n", "--comment=pipe:o:r", "--cpus-per-task=2", "--gres=gpu:1",
                          "/bin/sh", "-c", "exec x"));
}

TEST(Allocation, steps_are_recognised_only_by_their_sruns) {
  using namespace std::string_literals;
  const core::TemporaryFolder proc;
  const std::pair<const char*, std::string> processes[]{
      {"7", "/usr/bin/srun\0--job-name=n\0--comment=pipe:o:r\0/bin/sh\0"s},
      {"8", "/usr/bin/srun\0--job-name=m\0"s},  // Of somebody else.
      {"9", "sh\0--job-name=n\0--comment=pipe:o:r\0"s},
      {"self", "/usr/bin/srun\0--comment=pipe:o:r\0"s},
      {"10", ""s}};
  for (const auto& [number, words] : processes) {
    core::make_folders(proc.path() / number);
    core::write_file_atomically(proc.path() / number / "cmdline", words);
  }
  const auto found = step_processes(proc.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "7");
  EXPECT_EQ(found[0].name, "n");
  EXPECT_EQ(found[0].comment, "pipe:o:r");
}

TEST(Allocation, is_absent_outside_of_a_job) {
  unsetenv("SLURM_JOB_ID");
  EXPECT_THROW(AllocationClient(), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
