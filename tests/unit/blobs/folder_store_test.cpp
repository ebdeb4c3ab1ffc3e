// The shared folder as a remote store.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/sleep.hpp"
#include "blobs/folder/folder_store.hpp"
#include "core/file.hpp"
#include "support/run_task.hpp"

namespace pipeline::blobs::folder {
namespace {

namespace fs = std::filesystem;
using test::run_task;
using testing::HasSubstr;

class ASharedFolder : public testing::Test {
 protected:
  void put(const std::string& key, const std::string& text) {
    run_task(loop, store.put(key, body_of(text), nullptr));
  }
  template <class Work>
  std::string error(Work work) {
    try {
      work();
    } catch (const core::EnvironmentError& failed) {
      std::string text = failed.what();
      for (const auto& line : failed.advice()) text += "\n" + line;
      return text;
    }
    return "none";
  }

  asio::io_context loop;
  core::TemporaryFolder parent;
  const fs::path path = parent.path() / "shared";
  FolderStore store{path};
};

TEST_F(ASharedFolder, can_be_named_by_its_url_or_by_its_path) {
  EXPECT_EQ(read_address("file:///mnt/x/", "/base"), "file:///mnt/x");
  EXPECT_EQ(read_address("/mnt/x", "/base"), "file:///mnt/x");
  EXPECT_EQ(read_address("../x", "/base/y"), "file:///base/x");
  for (const auto* bad : {"file://host/x", "file://", "/", "team/pipe", "", "gs://team"})
    EXPECT_EQ(read_address(bad, "/base"), std::nullopt) << bad;
}

TEST_F(ASharedFolder, that_is_not_mounted_is_an_error_and_not_an_empty_store) {
  for (const auto& text :
       {error([&] { run_task(loop, store.probe()); }), error([&] { put("k", "x"); }),
        error([&] { run_task(loop, store.has("k")); }),
        error([&] { run_task(loop, store.find_text("k")); }),
        error([&] { run_task(loop, store.list("a/")); }),
        error([&] { run_task(loop, store.remove("k")); })}) {
    EXPECT_THAT(text, HasSubstr("there is no folder " + path.string()));
    EXPECT_THAT(text, HasSubstr("mount it"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ASharedFolder, has_no_key_outside_of_it) {
  fs::create_directory(path);
  core::write_file_atomically(parent.path() / "secret", "x");
  for (const auto* key : {"../secret", "a/../../secret", "/etc/passwd", "", "a//b", ".new/x", "a/"})
    EXPECT_THAT(error([&] { run_task(loop, store.get_text(key)); }), HasSubstr("is not a key of"))
        << key;
  fs::create_symlink(parent.path() / "secret", path / "link");
  EXPECT_NE(error([&] { run_task(loop, store.get_text("link")); }), "none");
  EXPECT_TRUE(run_task(loop, store.list("")).empty());
}

TEST_F(ASharedFolder, changes_nothing_behind_links_that_other_users_make_in_it) {
  const auto home = parent.path() / "home";
  fs::create_directories(home / "mine");
  fs::create_directories(path / ".locks");
  ASSERT_EQ(::chmod(path.c_str(), 02775), 0);
  const auto secret = home / "mine/secret";
  core::write_file_atomically(secret, "x");
  fs::permissions(secret, fs::perms::owner_read | fs::perms::owner_write);
  for (const auto* digits = "0123456789abcdef"; const char one : std::string_view(digits))
    for (const char two : std::string_view(digits))
      fs::create_symlink(secret, path / ".locks" / std::string({one, two}));
  const auto tag = run_task(loop, store.put_if("k", "one", ""));
  ASSERT_TRUE(tag);
  EXPECT_THAT(error([&] { run_task(loop, store.put_if("k", "two", *tag)); }),
              HasSubstr("no link below the folder is followed"));
  fs::remove_all(path / ".locks");
  fs::create_directories(path / ".locks");
  for (const auto* digits = "0123456789abcdef"; const char one : std::string_view(digits))
    for (const char two : std::string_view(digits))
      fs::create_hard_link(secret, path / ".locks" / std::string({one, two}));
  EXPECT_NE(error([&] { run_task(loop, store.put_if("k", "two", *tag)); }), "none");
  EXPECT_EQ(fs::status(secret).permissions(), fs::perms::owner_read | fs::perms::owner_write);

  fs::create_symlink(home / "mine", path / "link");
  fs::create_symlink(home, path / "published");
  EXPECT_NE(error([&] { put("link/new", "x"); }), "none");
  EXPECT_NE(error([&] { put("published/mine/new", "x"); }), "none");
  EXPECT_NE(error([&] { run_task(loop, store.list("link/")); }), "none");
  EXPECT_NE(error([&] { run_task(loop, store.list("published/mine/")); }), "none");
  error([&] { run_task(loop, store.remove("link/secret")); });
  error([&] { run_task(loop, store.remove("published/mine/secret")); });
  EXPECT_TRUE(fs::exists(secret));
  EXPECT_FALSE(fs::exists(home / "mine/new"));
  EXPECT_NE(error([&] { run_task(loop, store.copy("link/secret", "stolen")); }), "none");
  EXPECT_FALSE(fs::exists(path / "stolen"));
  fs::remove_all(path / ".new");
  fs::create_symlink(home / "mine", path / ".new");
  const auto before = fs::last_write_time(home / "mine");
  EXPECT_THAT(error([&] { put("other", "x"); }), HasSubstr("no link below the folder is followed"));
  EXPECT_EQ(fs::last_write_time(home / "mine"), before) << "a file was made there";
}

TEST_F(ASharedFolder, gives_its_permissions_to_blobs_and_folders_in_it) {
  fs::create_directory(path);
  for (const mode_t mode : {02775, 0700}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto key = "a" + std::to_string(mode) + "/b";
    put(key, "x");
    struct stat folder {
    }, file{};
    ASSERT_EQ(::stat((path / key).parent_path().c_str(), &folder), 0);
    ASSERT_EQ(::stat((path / key).c_str(), &file), 0);
    EXPECT_EQ(folder.st_mode & 07777, mode);
    EXPECT_EQ(file.st_mode & 07777, mode & 0666);
  }
}

TEST_F(ASharedFolder, shows_no_part_of_a_blob_that_is_being_written) {
  fs::create_directory(path);
  put("k", "old");
  Body body;
  body.size = 3;
  std::string seen;
  body.read = [&](std::uint64_t offset, std::span<char> into) -> std::size_t {
    seen += core::read_file(path / "k") + " ";
    if (offset == 2) throw core::EnvironmentError("the disk is gone");
    into[0] = 'n';
    return 1;
  };
  EXPECT_EQ(error([&] { run_task(loop, store.put("k", body, nullptr)); }), "the disk is gone");
  EXPECT_EQ(seen, "old old old ");
  EXPECT_EQ(core::read_file(path / "k"), "old");
  EXPECT_TRUE(fs::is_empty(path / ".new"));
}

TEST_F(ASharedFolder, loses_the_unfinished_blobs_of_killed_processes) {
  fs::create_directories(path / ".new");
  for (const auto* name : {"dead", "alive"}) core::write_file_atomically(path / ".new" / name, "x");
  fs::last_write_time(path / ".new/dead", fs::file_time_type::clock::now() - std::chrono::days(8));
  run_task(loop, store.probe());
  EXPECT_FALSE(fs::exists(path / ".new/dead"));
  EXPECT_TRUE(fs::exists(path / ".new/alive"));
}

TEST_F(ASharedFolder, loses_nothing_behind_a_link_that_comes_and_goes) {
  const auto home = parent.path() / "home";
  fs::create_directories(home);
  fs::create_directories(path / ".new");
  fs::create_symlink(home, path / ".link");
  core::write_file_atomically(home / "mine", "x");
  fs::last_write_time(home / "mine", fs::file_time_type::clock::now() - std::chrono::days(8));
  const auto swap = [&] {
    ::renameat2(AT_FDCWD, (path / ".new").c_str(), AT_FDCWD, (path / ".link").c_str(),
                RENAME_EXCHANGE);
  };
  const SharedFolder folder(path);
  std::atomic<bool> is_done = false;
  std::thread other([&] {
    while (!is_done) swap();
  });
  constexpr int tries = 2000;
  for (int i = 0; i < tries && fs::exists(home / "mine"); ++i) folder.remove_abandoned();
  is_done = true;
  other.join();
  EXPECT_TRUE(fs::exists(home / "mine"));
}

TEST_F(ASharedFolder, has_blobs_that_cannot_be_used_and_others_that_can) {
  fs::create_directories(path / "results");
  put("results/good", "x");
  fs::create_symlink("/etc/passwd", path / "results/link");
  ASSERT_EQ(::mkfifo((path / "results/pipe").c_str(), 0666), 0);
  core::write_file_atomically(path / "results/large", "x");
  fs::resize_file(path / "results/large", core::max_text_bytes + 1);
  for (const auto* name : {"link", "pipe", "large"}) try {
      run_task(loop, store.find_text(std::string("results/") + name));
      ADD_FAILURE() << name;
    } catch (const BlobError& error) {
      EXPECT_EQ(error.kind(), BlobError::Kind::damaged_blob) << error.what();
    }
  EXPECT_EQ(run_task(loop, store.find_text("results/good")), "x");
  fs::create_directories(path / "results/folder/inner");
  try {
    put("results/folder", "x");
    ADD_FAILURE() << "written";
  } catch (const BlobError& error) {
    EXPECT_EQ(error.kind(), BlobError::Kind::damaged_blob) << error.what();
  }
}

TEST_F(ASharedFolder, waits_for_another_machine_that_writes_under_a_condition) {
  fs::create_directory(path);
  const auto tag = run_task(loop, store.put_if("k", "one", ""));
  ASSERT_TRUE(tag);
  const SharedFolder other(path);
  auto locked = other.try_lock("k");
  ASSERT_TRUE(locked);
  EXPECT_FALSE(other.try_lock("k")) << "two have it";
  bool is_written = false;
  const auto write = [&]() -> async::Task<> {
    const auto written = co_await store.put_if("k", "two", *tag);
    is_written = written.has_value();
  };
  asio::co_spawn(loop, write, asio::detached);
  run_task(loop, async::sleep(std::chrono::milliseconds(60), nullptr));
  EXPECT_EQ(core::read_file(path / "k"), "one");
  locked.reset();
  loop.restart();
  loop.run();
  EXPECT_TRUE(is_written);
  EXPECT_EQ(core::read_file(path / "k"), "two");
}

}  // namespace
}  // namespace pipeline::blobs::folder
