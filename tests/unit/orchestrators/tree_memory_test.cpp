#include "orchestrators/tree_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "core/file.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

constexpr std::size_t mebibyte = 1 << 20;

/// Touches memory of its own, which lasts as long as the process.
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
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      work();
      [[maybe_unused]] const auto said = ::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    char said;
    EXPECT_EQ(::read(ends[0], &said, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
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

std::uint64_t peak_of(const Child& root) {
  TreeMemory tree(root.pid());
  tree.sample();
  return tree.peak();
}

TEST(TreeMemory, is_the_sum_over_all_processes) {
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

TEST(TreeMemory, counts_what_forked_workers_share_once) {
  const Child root([] {
    hold(64 * mebibyte);
    for (int i = 0; i < 3; ++i) new Child([] {});
  });
  EXPECT_GT(peak_of(root), 63 * mebibyte);
  EXPECT_LT(peak_of(root), 96 * mebibyte);
}

TEST(TreeMemory, of_one_process_is_left_to_the_kernel) {
  EXPECT_EQ(peak_of(Child([] { hold(mebibyte); })), 0U);
}

TEST(TreeMemory, keeps_the_largest_sample) {
  const core::TemporaryFolder proc;
  const auto process = [&](int pid, const std::string& children, int kibibytes) {
    const auto folder = proc.path() / std::to_string(pid);
    core::make_folders(folder / "task" / std::to_string(pid));
    core::write_file_atomically(folder / "task" / std::to_string(pid) / "children", children);
    core::write_file_atomically(folder / "smaps_rollup",
                                "1-2 ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss:   " +
                                    std::to_string(kibibytes) + " kB\nPss_Dirty: 1 kB\n");
    core::write_file_atomically(folder / "statm", "9000 1000 1 1 0 1 0\n");
  };
  process(7, "8 ", 100);
  process(8, "", 30);
  TreeMemory tree(7, proc.path());
  tree.sample();
  process(8, "", 10);
  tree.sample();
  EXPECT_EQ(tree.peak(), 130U * 1024);
}

TEST(TreeMemory, that_grows_between_two_looks_at_shares_counts) {
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
  tree.sample();
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
  EXPECT_EQ(shared_out_memory_of(7, proc.path()),
            250U * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(shared_out_memory_of(8, proc.path()), 0U);
}

}  // namespace
}  // namespace pipeline::orchestrators
