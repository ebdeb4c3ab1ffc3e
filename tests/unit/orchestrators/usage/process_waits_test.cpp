#include "orchestrators/usage/process_waits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/file.hpp"
#include "core/shell_prelude.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A process that waits for a descendant, which sleeps.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    ::execl("/bin/sh", "sh", "-c", "sleep 600; true", nullptr);
    ::_exit(127);
  }
  ~Sleeper() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

TEST(ProcessWaits, name_each_process_of_a_tree_with_what_it_waits_in) {
  const Sleeper sleeper;
  std::vector<std::string> lines;
  for (int tries = 0; tries < 500; ++tries) {
    lines = waits_of_processes(process_tree(sleeper.pid()));
    if (lines.size() == 2 && lines[0].find(": sleeps") != std::string::npos &&
        lines[1].find("sleep 600: sleeps") != std::string::npos)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0],
              HasSubstr(std::to_string(sleeper.pid()) + " sh -c sleep 600; true: sleeps"));
  EXPECT_THAT(lines[1], HasSubstr("sleep 600: sleeps"));
}

TEST(ProcessWaits, a_command_is_the_users_text_alone) {
  const core::TemporaryFolder proc;
  core::make_folders(proc.path() / "7/task/7");
  core::write_file_atomically(proc.path() / "7/task/7/stat", "7 (bash) S 1 0 0");
  for (const auto prelude : {core::bash_prelude, core::sh_prelude}) {
    core::write_file_atomically(proc.path() / "7/cmdline",
                                "bash\n-c\n" + std::string(prelude) + "make all");
    EXPECT_THAT(waits_of_processes({7}, proc.path()),
                ElementsAre(HasSubstr("7 bash -c make all: sleeps")));
  }
}

TEST(ProcessWaits, of_threads_are_counted) {
  const core::TemporaryFolder proc;
  const auto thread = [&](int number, const std::string& stat, const std::string& function) {
    const auto folder = proc.path() / "7/task" / std::to_string(number);
    core::make_folders(folder);
    core::write_file_atomically(folder / "stat", std::to_string(number) + " " + stat);
    core::write_file_atomically(folder / "wchan", function);
  };
  thread(7, "(a (b) S) S 1 7", "futex_wait_queue");
  thread(8, "(python) S 1 7", "futex_wait_queue");
  thread(9, "(python) R 1 7", "0");
  thread(10, "(python) D 1 7", "0");
  core::write_file_atomically(proc.path() / "7/task/10/stack",
                              "[<0>] nvidia_poll+0x74/0xf0\n[<0>] do_syscall_64+0x71/0x280\n");
  core::write_file_atomically(proc.path() / "7/cmdline", std::string("python3\0train.py\0", 18));
  EXPECT_THAT(
      waits_of_processes({7, 8}, proc.path()),
      ElementsAre("7 python3 train.py: 1 thread waits for a device, in nvidia_poll, 1 thread "
                  "runs, 2 threads sleep in futex_wait_queue"));
}

TEST(ProcessWaits, name_the_rank_of_a_process_of_a_node_with_several) {
  const core::TemporaryFolder proc;
  core::make_folders(proc.path() / "7/task/7");
  core::write_file_atomically(proc.path() / "7/task/7/stat", "7 (python) T 1 0 0");
  core::write_file_atomically(proc.path() / "7/cmdline", "python3");
  const auto with = [&](std::string variables) {
    std::ranges::replace(variables, ' ', '\0');
    core::write_file_atomically(proc.path() / "7/environ", variables);
    return waits_of_processes({7}, proc.path());
  };
  EXPECT_THAT(with("RANK=3 GROUP_RANK=1 LOCAL_WORLD_SIZE=2 "),
              ElementsAre("7 python3 (rank 3): is stopped"));
  EXPECT_THAT(with("RANK=3 LOCAL_WORLD_SIZE=1 "), ElementsAre("7 python3: is stopped"));
  EXPECT_THAT(with("GROUP_RANK=1 LOCAL_WORLD_SIZE=2 "), ElementsAre("7 python3: is stopped"));
}

TEST(ProcessWaits, of_a_process_that_has_ended_are_empty) {
  EXPECT_THAT(waits_of_processes({1 << 30}), IsEmpty());
}

}  // namespace
}  // namespace pipeline::orchestrators::usage
