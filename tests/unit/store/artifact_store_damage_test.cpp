#include "store/artifact_store.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "unit/store/artifact_store_fixture.hpp"
#include "unit/store/processes.hpp"

namespace pipeline::store {
namespace {

TEST_F(ArtifactStoreTest, flipped_bits_are_noticed_by_verify) {
  std::mt19937 random(7);
  std::string content(5000, '\0');
  for (auto& c : content) c = static_cast<char>(random());
  for (int round = 0; round < 100; ++round) {
    const auto taken = store.take(write("out", content));
    const auto path = store.path(taken.digest);
    ASSERT_TRUE(store.verify(taken.digest));
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    auto flipped = content;
    const auto bit = random() % (content.size() * 8);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(path) << flipped;
    if (round % 2) {
      ASSERT_FALSE(store.looks_whole(taken.digest)) << "bit " << bit;
    } else {
      ASSERT_FALSE(store.verify(taken.digest)) << "bit " << bit;
    }
    ASSERT_FALSE(store.has(taken.digest)) << "a damaged artifact is moved aside";
  }
}

TEST_F(ArtifactStoreTest, any_change_within_a_folder_is_noticed) {
  const std::pair<const char*, std::function<void(const fs::path&)>> changes[] = {
      {"content", [](const fs::path& t) { std::ofstream(t / "a.txt") << "alphA"; }},
      {"removed", [](const fs::path& t) { fs::remove(t / "sub/b.txt"); }},
      {"added", [](const fs::path& t) { std::ofstream(t / "sub/new") << "n"; }},
      {"empty folder removed", [](const fs::path& t) { fs::remove(t / "empty"); }},
      {"renamed", [](const fs::path& t) { fs::rename(t / "sub-more/c", t / "sub-more/d"); }},
      {"emptied", [](const fs::path& t) { fs::resize_file(t / "a.txt", 0); }},
  };
  for (const auto& [name, change] : changes) {
    const auto taken = store.take(write_tree("tree"));
    const auto path = store.path(taken.digest);
    ASSERT_TRUE(store.looks_whole(taken.digest)) << name;
    for (const auto& place : {"", "sub", "sub-more", "a.txt", "sub/b.txt"})
      fs::permissions(path / place, fs::perms(0755));
    change(path);
    EXPECT_FALSE(store.looks_whole(taken.digest)) << name;
    EXPECT_FALSE(store.has(taken.digest)) << name;
  }
  EXPECT_GT(store.collect([](const core::Digest&) { return true; }), 0u)
      << "damaged ones are removed";
}

TEST_F(ArtifactStoreTest, lost_time_stamps_are_written_again_after_reading) {
  const auto taken = store.take(write_tree("tree"));
  fs::last_write_time(store.path(taken.digest) / "a.txt", fs::file_time_type::clock::now());
  EXPECT_TRUE(store.looks_whole(taken.digest));
  EXPECT_TRUE(store.looks_whole(taken.digest));
  EXPECT_EQ(mode(store.path(taken.digest)), 0755u);
}

TEST_F(ArtifactStoreTest, damaged_artifact_is_replaced_by_the_next_equal_one) {
  for (const bool tree : {false, true}) {
    const auto make = [&] { return tree ? write_tree("out") : write("out", "content"); };
    const auto first = store.take(make());
    const auto inner = tree ? store.path(first.digest) / "a.txt" : store.path(first.digest);
    fs::permissions(inner, fs::perms(0644));
    std::ofstream(inner) << "damaged";
    EXPECT_EQ(store.take(make()).digest, first.digest);
    EXPECT_TRUE(store.verify(first.digest)) << tree;
  }
}

TEST_F(ArtifactStoreTest, killed_process_leaves_no_half_artifact) {
  for (int round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      end_after(std::chrono::milliseconds(3 + round));
      try {
        for (int i = 0;; ++i) {
          const auto name = "k" + std::to_string(round) + "-" + std::to_string(i);
          write_tree(name);
          write(name + "/big", std::string(200'000, static_cast<char>('a' + i % 26)) + name);
          store.take(folder.path() / name);
        }
      } catch (const std::exception&) {
      }
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  store.collect([&](const core::Digest& digest) {
    EXPECT_TRUE(store.looks_whole(digest));
    EXPECT_TRUE(store.verify(digest));
    return true;
  });
}

TEST_F(ArtifactStoreTest, full_disk_is_a_clear_error_and_leaves_nothing) {
  const auto disk = folder.path() / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "cannot mount a small tmpfs: " << std::strerror(errno);
  {
    ArtifactStore small(disk / "store");
    const auto fits = small.take(write("small", std::string(1000, 'x')));
    const auto source = write("big", std::string(3'000'000, 'x'));
    write("tree/a", std::string(100'000, 'y'));
    write("tree/big", std::string(3'000'000, 'x'));
    for (const auto& path : {source, folder.path() / "tree"}) {
      try {
        small.take(path);
        ADD_FAILURE() << "the artifact was stored on a full disk";
      } catch (const core::EnvironmentError& error) {
        EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos)
            << error.what();
        EXPECT_FALSE(error.advice().empty());
      }
      EXPECT_TRUE(fs::exists(path)) << "an output that could not be stored stays in its place";
    }
    EXPECT_TRUE(fs::is_empty(disk / "store/tmp"));
    std::size_t count = 0;
    small.collect([&](const core::Digest&) { return ++count; });
    EXPECT_EQ(count, 1u);
    EXPECT_TRUE(small.verify(fits.digest));
  }
  ::umount(disk.c_str());
}

}  // namespace
}  // namespace pipeline::store
