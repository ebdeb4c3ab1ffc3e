#include "core/processors.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::core {
namespace {

class Processors : public testing::Test {
 protected:
  void write(const char* path, const char* text) {
    make_folders((folder.path() / path).parent_path());
    write_file_atomically(folder.path() / path, text);
  }
  unsigned usable() { return usable_processors(folder.path() / "proc", folder.path() / "groups"); }
  ~Processors() override {
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_CPUS_ON_NODE");
  }
  TemporaryFolder folder;
};

TEST_F(Processors, are_those_of_the_machine_without_a_quota) {
  write("proc/cgroup", "0::/a/b\n");
  write("groups/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(usable(), usable_processors());
  EXPECT_GE(usable(), 1u);
}

TEST_F(Processors, are_no_more_than_the_quota_of_any_group_above) {
  write("proc/cgroup", "0::/a/b\n");
  write("groups/a/b/cpu.max", "max 100000\n");
  write("groups/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable(), 1u);
}

TEST_F(Processors, of_a_container_with_groups_of_version_1_are_those_of_its_mount) {
  write("proc/cgroup", "4:cpu,cpuacct:/docker/ab\n0::/x\n");
  write("groups/cpu/cpu.cfs_quota_us", "70000\n");
  write("groups/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable(), 1u);
  write("groups/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable(), usable_processors());
}

TEST_F(Processors, of_a_job_of_slurm_are_those_of_the_job) {
  setenv("SLURM_CPUS_ON_NODE", "1", 1);
  EXPECT_EQ(usable(), usable_processors());  // A variable without a job.
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_EQ(usable(), 1u);
}

}  // namespace
}  // namespace pipeline::core
