#include "core/file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/excerpt.hpp"
#include "core/reading_stop.hpp"
#include "core/regular_file.hpp"
#include "core/scope_guard.hpp"

namespace pipeline::core {
namespace {

namespace fs = std::filesystem;

TEST(File, is_read_as_a_whole_whatever_its_size) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  for (const std::size_t size : {0u, 1u, 100'000u}) {
    const std::string content(size, '\0');
    write_file_atomically(path, content);
    EXPECT_EQ(read_file(path), content);
  }
  EXPECT_FALSE(read_file("/proc/self/status").empty())
      << "the kernel says that the size of this file is 0";
  EXPECT_THROW(read_file(folder.path()), EnvironmentError);
  EXPECT_THROW(read_file(folder.path() / "missing"), EnvironmentError);
}

TEST(File, that_is_too_large_for_memory_is_refused_by_its_name) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  const auto refusal_of = [](const fs::path& file, std::size_t most) {
    try {
      return std::to_string(read_file(file, most).size());
    } catch (const EnvironmentError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THROW(read_file(path, 4), EnvironmentError);
  EXPECT_EQ(refusal_of("/dev/zero", 1 << 20),
            "cannot read /dev/zero: it is a pipe, a socket or a device, and not a file");
  fs::resize_file(path, std::uintmax_t{5} << 40);
  EXPECT_EQ(refusal_of(path, max_text_bytes),
            "cannot read " + path.string() + ": it is larger than 64 MiB");
}

TEST(File, of_another_user_is_read_only_if_it_is_regular_and_short) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "12345");
  EXPECT_EQ(read_untrusted_file(path, 5), "12345");
  EXPECT_EQ(read_untrusted_file(path, 4), std::nullopt);
  fs::resize_file(path, std::uintmax_t{500} << 30);
  EXPECT_EQ(read_untrusted_file(path, 64 * 1024), std::nullopt);
  fs::create_symlink("/etc/passwd", folder.path() / "link");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "pipe", "missing", ""})
    EXPECT_EQ(read_untrusted_file(folder.path() / name, 64 * 1024), std::nullopt) << name;
}

TEST(File, is_replaced_as_a_whole_and_nothing_else_is_left) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "old");
  write_file_atomically(path, "new", Durability::power);
  EXPECT_EQ(read_file(path), "new");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  const auto mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
  fs::create_directory(folder.path() / "d");
  EXPECT_THROW(write_file_atomically(folder.path() / "d", "x"), EnvironmentError);
  EXPECT_THROW(write_file_atomically(folder.path() / "missing/f", "x"), EnvironmentError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

TEST(File, readers_never_see_a_part_of_it) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, std::string(100'000, 'a'));
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 200; ++i)
      write_file_atomically(path, std::string(100'000, static_cast<char>('a' + i % 26)));
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const auto content = read_file(path);
    ASSERT_EQ(content, std::string(100'000, content.at(0)));
  }
  EXPECT_EQ(status, 0);
}

TEST(File, tree_is_removed_below_read_only_folders_and_through_no_link) {
  const TemporaryFolder outer;
  ::chmod(outer.path().c_str(), 0777);
  const auto keep = outer.path() / "keep";
  fs::create_directories(keep / "inside");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(9);
    const auto tree = outer.path() / "tree";
    fs::create_directories(tree / "a/b/c");
    std::ofstream(tree / "a/b/file") << "x";
    fs::create_symlink(keep, tree / "a/link");
    ::chmod((tree / "a/b/c").c_str(), 0);
    ::chmod((tree / "a/b").c_str(), 0555);
    ::chmod((tree / "a").c_str(), 0555);
    int result = 0;
    try {
      remove_tree(tree / "");
    } catch (const EnvironmentError&) {
      result = 1;
    }
    ::_exit(fs::exists(tree) ? 2 : result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(keep / "inside"));
  remove_tree(outer.path() / "missing");
  remove_tree(outer.path() / "missing/deeper");
  fs::create_symlink(keep, outer.path() / "link");
  remove_tree(outer.path() / "link");
  EXPECT_TRUE(fs::exists(keep / "inside"));
  EXPECT_FALSE(fs::is_symlink(outer.path() / "link"));
}

/// Makes folders called `d`, one in the other; their path is longer than any call would take.
void make_deep(const fs::path& top, int levels) {
  fs::create_directory(top);
  Descriptor folder(::open(top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < levels; ++i) {
    ASSERT_EQ(::mkdirat(folder.get(), "d", 0700), 0);
    folder = Descriptor(::openat(folder.get(), "d", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ASSERT_EQ(::mkdirat(folder.get(), "file-beside", 0700), 0);
}

TEST(File, entries_are_those_of_a_folder_and_not_of_one_that_a_link_leads_to) {
  const TemporaryFolder folder;
  make_folders(folder.path() / "a/b");
  write_file_atomically(folder.path() / "a/c", "");
  fs::create_directory_symlink("a", folder.path() / "link");
  auto entries = entries_of(folder.path() / "a");
  std::ranges::sort(entries);
  EXPECT_EQ(entries, (std::vector{folder.path() / "a/b", folder.path() / "a/c"}));
  for (const char* name : {"link", "a/c", "missing"})
    EXPECT_TRUE(entries_of(folder.path() / name).empty()) << name;
}

TEST(File, tree_deeper_than_there_are_descriptors_is_removed) {
  const TemporaryFolder outer(fs::exists("/dev/shm") ? "/dev/shm"
                                                     : "");  // a disk may take seconds for it
  make_deep(outer.path() / "deep", 5'000);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{16, 16};
    ::setrlimit(RLIMIT_NOFILE, &few);
    ::close_range(3, ~0U, 0);
    int result = 0;
    try {
      remove_tree(outer.path() / "deep");
    } catch (const EnvironmentError&) {
      result = 1;
    }
    ::_exit(fs::exists(outer.path() / "deep") ? 2 : result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(File, entry_that_cannot_be_removed_is_named_and_the_rest_is_removed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another owner";
  const TemporaryFolder outer;
  ::chmod(outer.path().c_str(), 0777);
  const auto tree = outer.path() / "tree";
  fs::create_directories(tree / "theirs");
  std::ofstream(tree / "theirs/a") << "x";
  std::ofstream(tree / "theirs/b") << "x";
  fs::create_directories(tree / "ours/inside");
  for (const auto* path : {"", "ours", "ours/inside"})
    ASSERT_EQ(::chown((tree / path).c_str(), 65534, 65534), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    try {
      remove_tree(tree);
    } catch (const EnvironmentError& error) {
      const std::string said = error.what();
      const bool named = said.find("tree/theirs/") != said.npos && said.find("1 more") != said.npos;
      ::_exit(named ? 0 : 2);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(tree / "theirs/a"));
  EXPECT_FALSE(fs::exists(tree / "ours"));
}

TEST(File, removing_changes_no_permissions_outside_while_links_replace_folders) {
  const TemporaryFolder outer;
  const auto victim = outer.path() / "victim", tree = outer.path() / "tree",
             link = outer.path() / "link";
  fs::create_directory(victim);
  ::chmod(victim.c_str(), 0500);
  for (int round = 0; round < 100; ++round) {
    fs::create_directory(tree);
    const auto folder = tree / "folder";
    fs::create_directories(folder / "inside");
    ::chmod(folder.c_str(), 0);
    fs::create_directory_symlink(victim, link);
    std::atomic<bool> is_removed = false;
    std::thread other([&] {
      while (!is_removed)
        if (::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0)
          break;
    });
    try {
      remove_tree(tree);
    } catch (const EnvironmentError&) {  // The other took its turn while the folder was entered.
    }
    is_removed = true;
    other.join();
    for (const auto& left : {tree, link}) remove_tree(left);
    struct stat status {};
    ASSERT_EQ(::stat(victim.c_str(), &status), 0);
    ASSERT_EQ(status.st_mode & 07777U, 0500U) << "in round " << round;
  }
}

TEST(File, temporary_folder_is_removed_with_its_owner) {
  fs::path path;
  {
    TemporaryFolder first;
    const TemporaryFolder folder(std::move(first));
    path = folder.path();
    fs::create_directories(path / "a/b");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
  TemporaryFolder released;
  path = released.release();
  EXPECT_TRUE(fs::exists(path));
  fs::remove(path);
  EXPECT_THROW(TemporaryFolder("/nonexistent"), EnvironmentError);
}

TEST(File, a_wait_for_a_lock_of_another_process_has_a_time_limit) {
  const TemporaryFolder folder;
  const auto opened = [&] {
    return Descriptor(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  };
  auto theirs = opened();
  const auto ours = opened();
  ASSERT_EQ(::flock(theirs.get(), LOCK_EX), 0);
  EXPECT_THROW(lock_exclusively(ours.get(), folder.path(), std::chrono::milliseconds(20)),
               EnvironmentError);
  theirs = Descriptor();
  EXPECT_NO_THROW(lock_exclusively(ours.get(), folder.path(), std::chrono::milliseconds(20)));
  EXPECT_NE(::flock(opened().get(), LOCK_EX | LOCK_NB), 0);
}

TEST(File, a_stop_at_once_ends_the_wait_for_a_lock) {
  const TemporaryFolder folder;
  const auto opened = [&] {
    return Descriptor(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  };
  const auto theirs = opened(), ours = opened();
  ASSERT_EQ(::flock(theirs.get(), LOCK_EX), 0);
  stop_reading();
  const ScopeGuard reset([] { permit_reading(); });
  EXPECT_THROW(lock_exclusively(ours.get(), folder.path(), std::chrono::milliseconds(20)), Stopped);
}

TEST(File, that_others_may_have_made_is_opened_only_if_it_is_regular) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "file";
  std::ofstream(file) << "x";
  fs::create_symlink(file, folder.path() / "link");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  fs::create_directory(folder.path() / "folder");
  const auto refusal_of = [&](const char* name) {
    errno = 0;
    return open_untrusted_file(folder.path() / name) ? 0 : errno;
  };
  EXPECT_EQ(refusal_of("file"), 0);
  EXPECT_EQ(refusal_of("link"), ELOOP);
  EXPECT_EQ(refusal_of("pipe"), EINVAL);
  EXPECT_EQ(refusal_of("folder"), EINVAL);
  EXPECT_EQ(refusal_of("none"), ENOENT);
  const Descriptor open(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(open_untrusted_file("file", open.get()));
}

TEST(Excerpt, of_a_long_text_is_its_beginning_in_whole_characters) {
  EXPECT_EQ(excerpt("short"), "short");
  const std::string letters(8191, 'a');
  EXPECT_EQ(excerpt(letters + "ab"), letters + "a... (and 1 bytes more)");
  EXPECT_EQ(excerpt(letters + "\u00e9\u00e9"), letters + "... (and 4 bytes more)");
}

TEST(File, files_in_proc_of_a_process_that_ends_meanwhile_are_absent) {
  for (int round = 0; round < 200; ++round) {
    const auto child = ::fork();
    if (child == 0) ::_exit(0);
    std::thread end([child] { ::waitpid(child, nullptr, 0); });
    const auto file = "/proc/" + std::to_string(child) + "/stat";
    std::string text = "running";
    while (!std::exchange(text, {}).empty()) EXPECT_NO_THROW(text = read_if_file(file));
    end.join();
  }
}

TEST(File, folders_are_made_or_the_obstacle_is_named) {
  const TemporaryFolder folder;
  make_folders(folder.path() / "a/b/c");
  make_folders(folder.path() / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder.path() / "a/b/c"));
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THROW(make_folders(folder.path() / "file"), EnvironmentError);
  EXPECT_THROW(make_folders(folder.path() / "file/x"), EnvironmentError);
}

}  // namespace
}  // namespace pipeline::core
