#include "orchestrators/usage/group_usage.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

/// A folder with the files that the kernel has for groups.
class GroupUsageTest : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((folder.path() / file).parent_path());
    std::ofstream(folder.path() / file) << text;
  }
  core::TemporaryFolder folder;
};

TEST_F(GroupUsageTest, a_removed_group_has_no_known_usage) {
  EXPECT_FALSE(find_container_group("abc", folder.path()).exists());
  EXPECT_EQ(first_process(find_container_group("abc", folder.path())), 0);
  const fs::path gone = folder.path() / "gone";
  EXPECT_EQ(GroupUsage({true, gone, gone, gone}).read(), core::Usage());
  EXPECT_EQ(GroupUsage({false, gone, gone, gone}).read(), core::Usage());
}

TEST_F(GroupUsageTest, groups_of_version_2_have_their_usage) {
  write("cgroup.controllers", "cpu io memory\n");
  const std::string group = "system.slice/docker-abc.scope/";
  write(group + "cgroup.procs", std::to_string(::getpid()) + "\n");
  write(group + "cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\n");
  write(group + "memory.current", "1000\n");
  write(group + "memory.peak", "9000\n");
  write(group + "memory.stat", "anon 500\nfile 4000\nshmem 1000\n");
  write(group + "io.stat",
        "8:0 rbytes=100 wbytes=7 rios=1 wios=1\n8:16 rbytes=1 wbytes=2 rios=1 wios=1\n");
  const auto folders = find_container_group("abc", folder.path());
  ASSERT_TRUE(folders.exists());
  EXPECT_EQ(first_process(folders), ::getpid());
  GroupUsage usage(folders);
  usage.sample();
  const auto read = usage.read();
  EXPECT_EQ(read.user, microseconds(20));
  EXPECT_EQ(read.system, microseconds(10));
  EXPECT_EQ(read.peak_memory, 6000u) << "the files that can be dropped do not count";
  EXPECT_EQ(read.read, 101u);
  EXPECT_EQ(read.written, 9u);
}

TEST_F(GroupUsageTest, groups_of_version_1_have_their_usage) {
  const std::string below = "/docker/abc/";
  for (const std::string controller : {"memory", "cpuacct", "blkio"})
    write(controller + below + "cgroup.procs", "");
  write("cpuacct" + below + "cpuacct.usage", "4000000\n");
  write("cpuacct" + below + "cpuacct.usage_user", "30000000\n");
  write("cpuacct" + below + "cpuacct.usage_sys", "10000000\n");
  write("memory" + below + "memory.usage_in_bytes", "8000\n");
  write("memory" + below + "memory.max_usage_in_bytes", "9000\n");
  write("memory" + below + "memory.stat", "cache 1\ntotal_cache 5000\ntotal_shmem 0\n");
  write("blkio" + below + "blkio.throttle.io_service_bytes",
        "8:0 Read 100\n8:0 Write 7\n8:0 Total 107\nTotal 107\n");
  GroupUsage usage(find_container_group("abc", folder.path()));
  const auto first = usage.read();
  EXPECT_EQ(first.user, microseconds(3000)) << "the exact sum, divided as the ticks are";
  EXPECT_EQ(first.system, microseconds(1000));
  EXPECT_EQ(first.peak_memory, 4000u);
  EXPECT_EQ(first.read, 100u);
  EXPECT_FALSE(first.written) << "the kernel does not attribute its delayed writes to a group";
  write("memory" + below + "memory.stat", "total_cache 100\n");
  usage.sample();
  write("memory" + below + "memory.stat", "total_cache 8000\n");
  EXPECT_EQ(usage.read().peak_memory, 7900u) << "a sample counts, if it is more";
}

TEST_F(GroupUsageTest, bytes_that_the_kernel_does_not_count_are_not_known) {
  const std::string file = "/blkio.throttle.io_service_bytes";
  write("blkio/docker/abc/cgroup.procs", "");
  write("blkio/docker/abc" + file, "Total 0\n");
  write("blkio" + file, "Total 0\n");
  const auto folders = find_container_group("abc", folder.path());
  EXPECT_FALSE(GroupUsage(folders).read().read);
  EXPECT_FALSE(GroupUsage(folders).read().written);
  write("blkio" + file, "8:0 Read 100\n8:0 Write 7\nTotal 107\n");
  EXPECT_EQ(GroupUsage(folders).read().read, 0U)
      << "the kernel counts bytes, and the group has used no disk";
}

}  // namespace
}  // namespace pipeline::orchestrators::usage
