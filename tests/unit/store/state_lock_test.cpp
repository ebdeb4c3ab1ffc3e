#include "store/state_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <fstream>

namespace pipeline::store {
namespace {

TEST(StateLock, file_systems_that_machines_may_share_are_not_local) {
  constexpr long cifs = 0xff534d42, smb2 = 0xfe534d42, fuse = 0x65735546, lustre = 0x0bd00bd0;
  for (const long type : {long{NFS_SUPER_MAGIC}, long{V9FS_MAGIC}, cifs, smb2, fuse, lustre,
                          long{AFS_SUPER_MAGIC}, 0x1234L})
    EXPECT_FALSE(is_local_file_system(type)) << std::hex << type;
  for (const long type : {long{EXT4_SUPER_MAGIC}, long{TMPFS_MAGIC}, long{OVERLAYFS_SUPER_MAGIC},
                          long{BTRFS_SUPER_MAGIC}})
    EXPECT_TRUE(is_local_file_system(type)) << std::hex << type;
  EXPECT_FALSE(is_local_file_system("/nonexistent"));
}

TEST(StateLock, is_seen_while_it_is_held_and_separate_for_each_run) {
  const core::TemporaryFolder state;
  const auto byte = StateLock::driver_of("run-1");
  EXPECT_NE(byte, StateLock::driver_of("run-2"));
  EXPECT_GT(byte, StateLock::artifacts);
  EXPECT_FALSE(StateLock::is_held(state.path(), byte));
  {
    const auto lock = StateLock::take(state.path(), byte, StateLock::Kind::exclusive);
    EXPECT_TRUE(lock.locks());
    EXPECT_TRUE(StateLock::is_held(state.path(), byte));
    EXPECT_FALSE(StateLock::is_held(state.path(), StateLock::driver_of("run-2")));
    EXPECT_FALSE(StateLock::try_take(state.path(), byte, StateLock::Kind::exclusive));
  }
  EXPECT_FALSE(StateLock::is_held(state.path(), byte));
}

TEST(StateLock, is_only_for_users_who_may_write_into_the_folder) {
  const core::TemporaryFolder state;
  const auto file = state.path() / "locks";
  std::ofstream(file) << "";
  for (const auto& [folder, wanted] :
       {std::pair(0755, 0600), std::pair(0775, 0660), std::pair(0777, 0666)}) {
    ASSERT_EQ(::chmod(state.path().c_str(), static_cast<mode_t>(folder)), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
    const auto lock = StateLock::take(state.path(), 1, StateLock::Kind::exclusive);
    struct stat status {};
    ASSERT_EQ(::stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, static_cast<mode_t>(wanted)) << std::oct << folder;
  }
}

TEST(StateLock, is_not_taken_where_it_cannot_be) {
  const auto lock = StateLock::take("/nonexistent", 1, StateLock::Kind::exclusive);
  EXPECT_FALSE(lock.locks());
  EXPECT_FALSE(StateLock::is_held("/nonexistent", 1));
}

TEST(KeyLocks, exclude_other_runs_and_the_same_one_for_each_key_with_one_descriptor) {
  const core::TemporaryFolder state;
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  KeyLocks ours(state.path()), theirs(state.path());
  for (const auto* key : {"a", "b", "c"}) {
    EXPECT_TRUE(ours.try_take(key));
    EXPECT_FALSE(ours.try_take(key));
    EXPECT_FALSE(theirs.try_take(key));
  }
  EXPECT_EQ(descriptors(), before + 2);
  ours.release("b");
  EXPECT_TRUE(theirs.try_take("b"));
  EXPECT_FALSE(ours.try_take("b"));
  EXPECT_FALSE(theirs.try_take("a"));
}

TEST(KeyLocks, of_a_run_are_seen_by_it_where_the_file_system_has_none) {
  KeyLocks locks("/nonexistent");
  EXPECT_TRUE(locks.try_take("a"));
  EXPECT_FALSE(locks.try_take("a"));
  locks.release("a");
  EXPECT_TRUE(locks.try_take("a"));
}

TEST(Heartbeat, renews_its_file_and_removes_it_at_its_end) {
  const core::TemporaryFolder state;
  const auto file = state.path() / "drivers/run-1";
  EXPECT_FALSE(Heartbeat::is_fresh(file));
  {
    const Heartbeat heartbeat(file, std::chrono::milliseconds(1));
    for (int beat = 0; beat < 3; ++beat) {
      const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), long_ago, 0), 0);
      while (!Heartbeat::is_fresh(file)) {
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace pipeline::store
