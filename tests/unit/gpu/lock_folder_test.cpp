#include "gpu/lock_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::gpu {
namespace {

class GpuLocks : public testing::Test {
 protected:
  LockFolder open() { return LockFolder(folder_.path() / "gpus"); }
  static HolderInfo me() {
    return {.pid = ::getpid(),
            .user = "ana",
            .run = "r1",
            .step = "train",
            .since = WallTime(std::chrono::milliseconds(5))};
  }
  static LockFolder::Session enter(LockFolder& folder) {
    auto session = folder.try_enter();
    EXPECT_TRUE(session);
    return std::move(*session);
  }
  static bool changed(LockFolder& folder, int milliseconds) {
    pollfd poll{folder.watch(), POLLIN, 0};
    return ::poll(&poll, 1, milliseconds) == 1;
  }
  core::TemporaryFolder folder_;
};

TEST_F(GpuLocks, a_gpu_is_held_until_its_descriptor_is_closed) {
  auto folder = open(), other = open();
  auto held = enter(folder).take("GPU-a", me());
  EXPECT_TRUE(enter(other).is_held("GPU-a"));
  EXPECT_FALSE(enter(other).is_held("GPU-b"));
  EXPECT_EQ(enter(other).holder("GPU-a")->step, "train");
  EXPECT_EQ(enter(other).holder("GPU-a")->user, "ana");
  EXPECT_FALSE(enter(other).holder("GPU-a")->gone);
  EXPECT_THROW(enter(other).take("GPU-a", me()), core::EnvironmentError);
  held = core::Descriptor();
  EXPECT_FALSE(enter(other).is_held("GPU-a"));
  EXPECT_FALSE(enter(other).holder("GPU-a"));
}

TEST_F(GpuLocks, a_step_that_unlocks_what_it_inherits_frees_no_gpu_of_a_living_driver) {
  auto folder = open(), other = open();
  auto held = enter(folder).take("GPU-a", me()), shared = enter(folder).share("GPU-a");
  struct flock none {};
  none.l_type = F_UNLCK;
  ASSERT_EQ(::flock(shared.get(), LOCK_UN), 0);
  ASSERT_EQ(::fcntl(shared.get(), F_OFD_SETLK, &none), 0);
  EXPECT_TRUE(enter(other).is_held("GPU-a"));
  shared = core::Descriptor();
  shared = enter(folder).share("GPU-a");
  held = core::Descriptor();
  EXPECT_TRUE(enter(other).is_held("GPU-a")) << "the processes outlive their driver";
  shared = core::Descriptor();
  EXPECT_FALSE(enter(other).is_held("GPU-a"));
}

TEST_F(GpuLocks, text_of_another_user_does_not_control_the_terminal) {
  auto folder = open();
  auto holder = me();
  holder.step = "\x1b]0;title\a";
  holder.user = "\x1b[2J";
  const auto held = enter(folder).take("GPU-a", holder);
  EXPECT_EQ(enter(folder).holder("GPU-a")->step, "\\x1b]0;title\\x07");
  EXPECT_EQ(enter(folder).holder("GPU-a")->user, "\\x1b[2J");
}

TEST_F(GpuLocks, one_driver_at_a_time_decides) {
  auto folder = open(), other = open();
  auto session = folder.try_enter();
  EXPECT_FALSE(other.try_enter());
  session.reset();
  EXPECT_TRUE(other.try_enter());
}

TEST_F(GpuLocks, gpus_of_a_killed_holder_are_free_and_waiters_are_notified) {
  auto folder = open();
  folder.watch();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = open();
    auto held = enter(own).take("GPU-a", me());
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  folder.forget_changes();
  EXPECT_TRUE(enter(folder).is_held("GPU-a"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(changed(folder, 10'000));
  EXPECT_FALSE(enter(folder).is_held("GPU-a"));
}

TEST_F(GpuLocks, a_process_that_inherits_the_descriptor_keeps_the_gpu_when_its_driver_is_dead) {
  auto folder = open();
  folder.watch();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t driver = ::fork();
  if (driver == 0) {
    auto own = open();
    own.sign_in();
    auto held = enter(own).take("GPU-a", me());
    const pid_t step = ::fork();
    if (step == 0) {
      for (int file = 3; file < 64; ++file)
        if (file != held.get() && file != ready[1]) ::close(file);
      const pid_t self = ::getpid();
      if (::write(ready[1], &self, sizeof self) != sizeof self) ::_exit(1);
      ::close(ready[1]);
      ::pause();
    }
    ::pause();
  }
  pid_t step = 0;
  ASSERT_EQ(::read(ready[0], &step, sizeof step), static_cast<ssize_t>(sizeof step));
  ::kill(driver, SIGKILL);
  ::waitpid(driver, nullptr, 0);
  EXPECT_TRUE(enter(folder).is_held("GPU-a"));
  EXPECT_TRUE(enter(folder).holder("GPU-a")->gone);
  EXPECT_NE(to_string(*enter(folder).holder("GPU-a")).find("left behind"), std::string::npos);
  folder.forget_changes();
  ::kill(step, SIGKILL);
  EXPECT_TRUE(changed(folder, 10'000));
  for (int tries = 0; tries < 2000 && enter(folder).is_held("GPU-a"); ++tries) ::usleep(1000);
  EXPECT_FALSE(enter(folder).is_held("GPU-a"));
}

TEST_F(GpuLocks, the_queue_holds_what_living_drivers_wait_for) {
  auto folder = open();
  {
    auto dead = open();
    auto living = open();
    const LockEntry of_dead{dead.sign_in(), {.number = 1, .demand = {2, {"GPU-a", "GPU-b"}}}, me()};
    const LockEntry of_living{
        living.sign_in(),
        {.number = 7, .demand = {1, {"GPU-a"}, true}, .overtaken = 3, .paused = true},
        me()};
    EXPECT_NE(dead.sign_in(), living.sign_in());
    enter(folder).put_queue({of_living, of_dead});
    EXPECT_EQ(enter(folder).queue().size(), 2u);
    EXPECT_EQ(enter(folder).queue()[0].waiting.number, 1u);
    dead = open();
    const auto left = enter(folder).queue();
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].waiting.number, 7u);
    EXPECT_EQ(left[0].waiting.overtaken, 3u);
    EXPECT_TRUE(left[0].waiting.paused);
    EXPECT_TRUE(left[0].waiting.demand.idle);
    EXPECT_EQ(left[0].waiting.demand.candidates, std::vector<std::string>{"GPU-a"});
    EXPECT_EQ(left[0].holder.step, "train");
  }
  EXPECT_TRUE(enter(folder).queue().empty());
}

TEST_F(GpuLocks, a_suspended_driver_holds_up_no_other) {
  auto folder = open();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = open();
    enter(own).put_queue({{own.sign_in(), {.number = 1, .demand = {1, {"GPU-a"}}}, me()}});
    [[maybe_unused]] const auto said = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char said;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_FALSE(enter(folder).queue().at(0).waiting.paused);
  ::kill(child, SIGSTOP);
  ::waitpid(child, nullptr, WUNTRACED);
  EXPECT_TRUE(enter(folder).queue().at(0).waiting.paused);
  ::kill(child, SIGCONT);
  ::waitpid(child, nullptr, WCONTINUED);
  EXPECT_FALSE(enter(folder).queue().at(0).waiting.paused);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(GpuLocks, slices_of_old_drivers_can_be_held) {
  auto folder = open();
  const auto held = enter(folder).take("MIG-GPU-1/7/0", me());
  EXPECT_TRUE(enter(folder).is_held("MIG-GPU-1/7/0"));
  EXPECT_FALSE(enter(folder).is_held("MIG-GPU-1/8/0"));
  EXPECT_EQ(enter(folder).holder("MIG-GPU-1/7/0")->step, "train");
}

TEST_F(GpuLocks, a_new_driver_at_the_place_of_a_dead_one_does_not_inherit_its_entries) {
  auto folder = open();
  std::string token;
  {
    auto dead = open();
    token = dead.sign_in();
    enter(folder).put_queue({{token, {.number = 1, .demand = {1, {"GPU-a"}}}, me()}});
  }
  auto next = open();
  EXPECT_EQ(next.sign_in().substr(0, 8), token.substr(0, 8));
  EXPECT_TRUE(enter(folder).queue().empty());
}

TEST_F(GpuLocks, a_damaged_queue_is_read_as_empty) {
  auto folder = open();
  folder.sign_in();
  for (const auto* text : {"", "[{\"driver\":", "{}", "[1, {\"driver\": 5}]"}) {
    std::ofstream(folder_.path() / "gpus" / "queue") << text;
    EXPECT_TRUE(enter(folder).queue().empty()) << text;
  }
}

TEST_F(GpuLocks, an_entry_whose_numbers_no_integer_can_hold_is_left_out) {
  auto folder = open();
  enter(folder).put_queue({{folder.sign_in(), {.number = 1, .demand = {1, {"GPU-a"}}}, me()}});
  const auto file = folder_.path() / "gpus" / "queue";
  const auto text = core::read_file(file);
  ASSERT_EQ(enter(folder).queue().size(), 1u);
  for (const auto* key : {"pid", "since", "number", "count", "overtaken"}) {
    auto list = nlohmann::json::parse(text);
    list[0][key] = 1e91;
    std::ofstream(file) << list.dump();
    EXPECT_TRUE(enter(folder).queue().empty()) << key;
  }
}

TEST_F(GpuLocks, writing_the_same_queue_again_wakes_nobody) {
  auto folder = open(), other = open();
  const std::vector<LockEntry> entries{
      {folder.sign_in(), {.number = 1, .demand = {1, {"GPU-a"}}}, me()}};
  other.watch();
  enter(folder).put_queue(entries);
  EXPECT_TRUE(changed(other, 10'000));
  other.forget_changes();
  enter(folder).put_queue(entries);
  enter(folder).queue();
  enter(folder).is_held("GPU-a");
  EXPECT_FALSE(changed(other, 50));
}

TEST_F(GpuLocks, all_users_can_write_to_the_folder_and_its_files) {
  auto folder = open();
  auto held = enter(folder).take("GPU-a", me());
  struct stat info {};
  ASSERT_EQ(::stat((folder_.path() / "gpus").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  ASSERT_EQ(::stat((folder_.path() / "gpus" / "GPU-a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0666u);
}

/// Returns what inotify says of the name first.
std::uint32_t first_event_of(const std::string& name, int watch) {
  alignas(inotify_event) char buffer[16384];
  const auto size = ::read(watch, buffer, sizeof buffer);
  for (ssize_t at = 0; at < size;) {
    const auto& event = *reinterpret_cast<const inotify_event*>(buffer + at);
    if (event.len > 0 && name == event.name) return event.mask & ~std::uint32_t{IN_ISDIR};
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  return 0;
}

/// A driver may be killed at any moment: what it leaves must not lock others out.
TEST_F(GpuLocks, the_folder_and_its_files_have_their_rights_before_their_names) {
  const core::Descriptor watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), folder_.path().c_str(), IN_ALL_EVENTS), 0);
  auto folder = open();
  EXPECT_EQ(first_event_of("gpus", watch.get()), std::uint32_t{IN_MOVED_TO});
  ASSERT_GE(::inotify_add_watch(watch.get(), (folder_.path() / "gpus").c_str(), IN_ALL_EVENTS), 0);
  auto held = enter(folder).take("GPU-a", me());
  EXPECT_EQ(first_event_of("GPU-a", watch.get()), std::uint32_t{IN_MOVED_TO});
  for (const auto& each : {folder_.path(), folder_.path() / "gpus"})
    for (const auto& entry : core::entries_of(each))
      EXPECT_EQ(entry.filename().string().find(each == folder_.path() ? "gpus." : ".new"),
                std::string::npos)
          << entry;
}

TEST_F(GpuLocks, links_are_not_followed) {
  std::filesystem::create_symlink(folder_.path(), folder_.path() / "link");
  EXPECT_THROW(LockFolder(folder_.path() / "link"), core::EnvironmentError);
  auto folder = open();
  std::ofstream(folder_.path() / "victim") << "mine";
  std::filesystem::create_symlink(folder_.path() / "victim", folder_.path() / "gpus" / "GPU-a");
  EXPECT_THROW(enter(folder).take("GPU-a", me()), core::EnvironmentError);
  std::filesystem::create_hard_link(folder_.path() / "victim", folder_.path() / "gpus" / "GPU-b");
  EXPECT_THROW(enter(folder).take("GPU-b", me()), core::EnvironmentError);
  EXPECT_EQ(core::read_file(folder_.path() / "victim"), "mine");
  EXPECT_THROW(enter(folder).take("../victim", me()), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::gpu
