#include "orchestrators/usage/tree_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "core/file.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

constexpr std::size_t mebibyte = 1 << 20;

/// Allocates and writes memory, which stays allocated as long as the process lives.
void hold(std::size_t bytes) {
  void* const held =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (held != MAP_FAILED) std::memset(held, 1, bytes);
}

/// A child process that does something, says so, and waits for its parent's end.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);  // It was killed before it could take this along.
      work();
      [[maybe_unused]] const auto said = ::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);  // A child that dies is then noticed.
    char said;
    EXPECT_EQ(::read(ends[0], &said, 1), 1);
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// Two samples show that the tree has not changed in between.
void look_at_shares(TreeMemory& tree) {
  tree.sample();
  tree.sample();
}

std::uint64_t peak_of(const Child& root) {
  TreeMemory tree(root.pid());
  look_at_shares(tree);
  return tree.peak();
}

TEST(TreeMemory, is_the_sum_over_all_processes) {
  if (test::under_tsan) GTEST_SKIP() << test::has_shadow;
  const auto with = [](std::size_t bytes) {
    return Child([bytes] {
      const auto* worker = new Child([bytes] { hold(bytes); });
      const auto* other = new Child([bytes] { hold(bytes); });
      EXPECT_GT(worker->pid() + other->pid(), 0);
    });
  };
  const auto few = with(mebibyte), many = with(65 * mebibyte);
  const auto grown = static_cast<double>(peak_of(many) - peak_of(few)) / mebibyte;
  EXPECT_NEAR(grown / 128, 1, 0.02);
}

TEST(TreeMemory, counts_memory_that_forked_workers_share_once) {
  if (test::under_tsan) GTEST_SKIP() << test::has_shadow;
  const auto with = [](std::size_t bytes) {
    return Child([bytes] {
      hold(bytes);
      for (int i = 0; i < 3; ++i) new Child([] {});
    });
  };
  const auto few = with(mebibyte), many = with(65 * mebibyte);
  const auto grown = (static_cast<double>(peak_of(many)) - static_cast<double>(peak_of(few))) /
                     static_cast<double>(mebibyte);
  EXPECT_NEAR(grown / 64, 1, 0.3);  // Four processes have it.
}

TEST(TreeMemory, of_one_process_is_left_to_the_kernel) {
  EXPECT_EQ(peak_of(Child([] { hold(mebibyte); })), 0U);
}

/// A folder like /proc, with processes that have so many KiB.
class Proc {
 public:
  struct Held {
    int data, shared = 0, files = 0, data_in_common = 0;
  };
  void put(int pid, const std::string& children, Held held) {
    const auto folder = path() / std::to_string(pid);
    core::make_folders(folder / "task" / std::to_string(pid));
    core::write_file_atomically(folder / "task" / std::to_string(pid) / "children", children);
    const auto line = [](const char* name, int kibibytes) {
      return name + std::string(":   ") + std::to_string(kibibytes) + " kB\n";
    };
    core::write_file_atomically(folder / "smaps_rollup",
                                "1-2 ---p 0 00:00 0 [rollup]\n" + line("Rss", 1) + line("Pss", 1) +
                                    line("Pss_Anon", held.data) + line("Pss_File", 1) +
                                    line("Pss_Shmem", held.shared) +
                                    line("Anonymous", held.data + held.data_in_common));
    core::write_file_atomically(folder / "status", "Name:\tx\n" + line("RssFile", held.files));
    const auto pages = [](int kibibytes) {
      return std::to_string(kibibytes * 1024 / ::sysconf(_SC_PAGESIZE));
    };
    const int mapped = held.shared + held.files;
    core::write_file_atomically(folder / "statm",
                                "90000 " + pages(held.data + held.data_in_common + mapped) + " " +
                                    pages(mapped) + " 1 0 1 0\n");
  }
  fs::path path() const { return folder_.path(); }

 private:
  const core::TemporaryFolder folder_;
};

TEST(TreeMemory, keeps_the_largest_sample) {
  Proc proc;
  proc.put(7, "8 ", {.data = 400});
  proc.put(8, "", {.data = 120});
  TreeMemory tree(7, proc.path());
  look_at_shares(tree);
  proc.put(8, "", {.data = 40});
  tree.sample();
  EXPECT_EQ(tree.peak(), 520U * 1024);
}

TEST(TreeMemory, counts_the_files_of_the_process_that_has_most_of_them) {
  Proc proc;
  proc.put(7, "8 ", {.data = 400, .shared = 80, .files = 2000});
  proc.put(8, "", {.data = 120, .shared = 40, .files = 4000});
  TreeMemory tree(7, proc.path());
  look_at_shares(tree);
  EXPECT_EQ(tree.peak(), (400U + 80 + 120 + 40 + 4000) * 1024);
}

TEST(TreeMemory, only_data_is_sampled_between_two_reads_of_shares) {
  Proc proc;
  proc.put(7, "8 ", {.data = 400, .files = 800, .data_in_common = 200});
  proc.put(8, "", {.data = 200, .files = 800, .data_in_common = 400});
  TreeMemory tree(7, proc.path(), std::chrono::hours(1));
  look_at_shares(tree);
  proc.put(8, "", {.data = 360, .shared = 8000, .files = 8000, .data_in_common = 400});
  tree.sample();
  EXPECT_EQ(tree.peak(), (400U + 360 + 800) * 1024)
      << "libraries that both load are not twice there";
}

TEST(TreeMemory, known_processes_are_followed_while_others_come_and_go) {
  Proc proc;
  proc.put(7, "8 ", {.data = 400, .files = 800, .data_in_common = 200});
  proc.put(8, "", {.data = 200, .data_in_common = 200});
  TreeMemory tree(7, proc.path(), std::chrono::hours(1));
  look_at_shares(tree);
  proc.put(7, "8 9 ", {.data = 2000, .files = 800, .data_in_common = 200});
  proc.put(9, "", {.data = 40, .data_in_common = 2200});
  tree.sample();
  EXPECT_EQ(tree.peak(), (2000U + 200 + 800) * 1024)
      << "the shared pages of a new process are not known yet";
}

TEST(TreeMemory, that_grows_between_two_reads_of_shares_counts) {
  if (test::under_tsan) GTEST_SKIP() << test::has_shadow;
  const auto file = ::memfd_create("size", 0);
  Child root([file] {
    hold(8 * mebibyte);
    new Child([] {});
    [[maybe_unused]] const auto noted = ::write(file, "x", 1);
    std::thread([file] {
      while (::lseek(file, 0, SEEK_END) < 2) std::this_thread::yield();
      hold(64 * mebibyte);
      [[maybe_unused]] const auto grown = ::write(file, "x", 1);
      for (;;) ::pause();
    }).detach();
  });
  TreeMemory tree(root.pid());
  look_at_shares(tree);
  const auto before = tree.peak();
  EXPECT_GT(before, 8 * mebibyte);
  [[maybe_unused]] const auto asked = ::write(file, "x", 1);
  while (::lseek(file, 0, SEEK_END) < 3) std::this_thread::yield();
  tree.sample();
  EXPECT_NEAR(static_cast<double>(tree.peak() - before) / (64 * mebibyte), 1, 0.02);
  ::close(file);
}

TEST(TreeMemory, finds_the_children_of_each_thread) {
  const Child root([] {
    new Child([] {});
    std::thread([] {
      new Child([] {});
      for (;;) ::pause();
    }).detach();
    while (descendants_of(::getpid()).size() < 3) std::this_thread::yield();
  });
  EXPECT_EQ(descendants_of(root.pid()).size(), 3U);
}

TEST(TreeMemory, where_the_kernel_has_no_shares_all_pages_count) {
  const core::TemporaryFolder proc;
  core::make_folders(proc.path() / "7");
  core::write_file_atomically(proc.path() / "7/statm", "1000 250 30 1 0 20 0\n");
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(proportional_memory_of(7, proc.path()),
            (ProcessMemory{.data = 220 * page, .mapped = 30 * page}));
  EXPECT_EQ(proportional_memory_of(8, proc.path()), ProcessMemory());
}

}  // namespace
}  // namespace pipeline::orchestrators::usage
