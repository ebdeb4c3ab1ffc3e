#include "store/artifact_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <optional>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "unit/store/artifact_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(ArtifactStoreTest, file_is_kept_under_the_sha256_of_its_content) {
  const auto taken = store.take(write("out", "hello\n"));
  EXPECT_EQ(taken.digest.hex(), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_FALSE(taken.is_directory);
  EXPECT_EQ(taken.bytes, 6u);
  EXPECT_EQ(core::read_file(store.path(taken.digest)), "hello\n");
  EXPECT_EQ(mode(store.path(taken.digest)), 0444u);
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
  EXPECT_TRUE(store.has(taken.digest));
  EXPECT_TRUE(store.looks_whole(taken.digest));
  EXPECT_TRUE(store.verify(taken.digest));
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(ArtifactStoreTest, a_file_that_is_almost_only_holes_is_refused_before_it_is_read) {
  constexpr std::uintmax_t tebibyte = std::uintmax_t{1} << 40;
  const auto refusal = [&](const fs::path& path) -> std::string {
    try {
      store.take(path);
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_NE(refusal(write_sparse("file", 15 * tebibyte)).find("it is sparse"), std::string::npos);
  write_sparse("tree/sub/file", 8 * tebibyte);
  EXPECT_NE(refusal(folder.path() / "tree")
                .find("it is sparse: 8191 GiB of it were never written, and at most 64 GiB may be"),
            std::string::npos);
  for (int i = 0; i < 3; ++i) write_sparse("many/" + std::to_string(i), tebibyte / 32);
  EXPECT_NE(refusal(folder.path() / "many").find("it is sparse"), std::string::npos)
      << "the files together have too many holes";
  EXPECT_EQ(refusal(write_sparse("small", std::uintmax_t{64} << 20)), "taken")
      << "some holes are nothing unusual";
  write_sparse("wide/sub/file", std::uintmax_t{64} << 20);
  EXPECT_EQ(refusal(folder.path() / "wide"), "taken");
}

TEST_F(ArtifactStoreTest, the_callback_has_the_artifact_while_the_output_still_exists) {
  const auto source = write("out", "hello\n"), copy = write("copy", "hello\n");
  fs::create_hard_link(copy, folder.path() / "link");  // not ours alone: it is copied
  fs::create_directory(folder.path() / "tree");
  const auto inner = write("tree/file", "hello\n");
  for (const auto& path : {source, copy, folder.path() / "tree"}) {
    std::vector<core::Digest> known;
    const auto taken = store.take(path, [&](const StoredArtifact& artifact) {
      EXPECT_TRUE(fs::exists(path)) << path;
      EXPECT_EQ(artifact.bytes, 6u);
      known.push_back(artifact.digest);
    });
    EXPECT_EQ(known, std::vector{taken.digest}) << path;
    EXPECT_FALSE(fs::exists(path)) << path;
  }
  const auto kept = write("kept", "other\n");
  EXPECT_THROW(
      store.take(kept,
                 [](const StoredArtifact&) { throw core::EnvironmentError("the disk is full"); }),
      core::EnvironmentError);
  EXPECT_EQ(core::read_file(kept), "other\n");
}

TEST_F(ArtifactStoreTest, a_file_that_changes_while_it_is_taken_is_refused) {
  const auto file = write("file", std::string(1000, 'a')), tree = write_tree("tree");
  const std::pair<fs::path, fs::path> cases[] = {{file, file}, {tree, tree / "sub/b.txt"}};
  for (const auto& [taken, written] : cases) {
    const core::Descriptor writer(::open(
        written.c_str(), O_WRONLY | O_CLOEXEC));  // as of a daemon that has outlived its step
    std::optional<core::Digest> digest;
    const auto write_on = [&](const StoredArtifact& artifact) {
      digest = artifact.digest;
      EXPECT_EQ(::pwrite(writer.get(), "x", 1, 0), 1);
    };
    try {
      store.take(taken, write_on);
      ADD_FAILURE() << taken;
    } catch (const core::EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find("changed while it was read"), std::string::npos)
          << error.what();
    }
    ASSERT_TRUE(digest);
    EXPECT_FALSE(store.has(*digest)) << "bytes that are not those of its name";
  }
}

TEST_F(ArtifactStoreTest, files_added_to_a_folder_while_it_is_taken_are_noticed) {
  const auto tree = write_tree("tree");
  EXPECT_THROW(store.take(tree, [&](const StoredArtifact&) { write("tree/late", "x"); }),
               core::EnvironmentError);
}

TEST_F(ArtifactStoreTest, a_flipped_bit_with_the_old_time_is_found_by_reading) {
  const auto taken = store.take(write("out", "hello"));
  const auto path = store.path(taken.digest);
  struct stat before {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ::chmod(path.c_str(), 0644);
  std::ofstream(path) << "hallo";
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  EXPECT_TRUE(store.looks_whole(taken.digest));
  EXPECT_FALSE(store.is_intact(taken.digest));
  EXPECT_FALSE(store.has(taken.digest)) << "the damaged artifact is moved aside";
}

TEST_F(ArtifactStoreTest, equal_content_is_kept_once_and_stays_executable_if_it_ever_was) {
  const auto first = store.take(write("one", "#!/bin/sh\n"));
  const auto second_path = write("two", "#!/bin/sh\n");
  fs::permissions(second_path, fs::perms(0755));
  EXPECT_EQ(store.take(second_path).digest, first.digest);
  EXPECT_FALSE(fs::exists(second_path));
  EXPECT_EQ(mode(store.path(first.digest)), 0555u);
  EXPECT_TRUE(store.looks_whole(first.digest));
  EXPECT_EQ(store.take(write("three", "#!/bin/sh\n")).digest, first.digest);
  EXPECT_EQ(mode(store.path(first.digest)), 0555u);
}

TEST_F(ArtifactStoreTest, folder_is_kept_with_its_links_empty_folders_and_executable_bits) {
  const auto taken = store.take(write_tree("tree"));
  const auto path = store.path(taken.digest);
  EXPECT_TRUE(taken.is_directory);
  EXPECT_EQ(taken.bytes, 14u);
  EXPECT_FALSE(fs::exists(folder.path() / "tree"));
  EXPECT_EQ(core::read_file(path / "link"), "beta");
  EXPECT_EQ(core::read_file(path / "sub/up"), "alpha");
  EXPECT_TRUE(fs::is_directory(path / "empty"));
  EXPECT_EQ(mode(path), 0755u);
  EXPECT_EQ(mode(path / "sub"), 0755u);
  EXPECT_EQ(mode(path / "sub/b.txt"), 0555u);
  EXPECT_EQ(mode(path / "a.txt"), 0444u);
  EXPECT_TRUE(store.looks_whole(taken.digest));
  EXPECT_TRUE(store.verify(taken.digest));
  EXPECT_EQ(store.take(write_tree("again")).digest, taken.digest);
  EXPECT_FALSE(fs::exists(folder.path() / "again"));
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(ArtifactStoreTest, digest_of_a_folder_depends_on_names_bits_and_empty_folders) {
  std::set<std::string> digests;
  const auto take_changed = [&](const std::string& name,
                                const std::function<void(const fs::path&)>& change) {
    const auto tree = write_tree(name);
    change(tree);
    EXPECT_TRUE(digests.insert(store.take(tree).digest.hex()).second) << name;
  };
  take_changed("same", [](const fs::path&) {});
  take_changed("renamed", [](const fs::path& tree) { fs::rename(tree / "a.txt", tree / "b.txt"); });
  take_changed("bit",
               [](const fs::path& tree) { fs::permissions(tree / "a.txt", fs::perms(0755)); });
  take_changed("empty", [](const fs::path& tree) { fs::create_directory(tree / "more"); });
  take_changed("target", [](const fs::path& tree) {
    fs::remove(tree / "link");
    fs::create_symlink("a.txt", tree / "link");
  });
  take_changed("content", [](const fs::path& tree) { std::ofstream(tree / "a.txt") << "alphb"; });
}

TEST_F(ArtifactStoreTest, links_that_leave_the_folder_by_any_path_are_refused) {
  const auto refused = [&](const std::string& name,
                           const std::function<void(const fs::path&)>& make) {
    const auto tree = folder.path() / name;
    fs::create_directories(tree / "p/q");
    write(name + "/p/q/file", "x");
    make(tree);
    try {
      store.take(tree);
      ADD_FAILURE() << name;
    } catch (const core::EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find("outside of the folder"), std::string::npos)
          << error.what();
    }
    EXPECT_TRUE(fs::exists(tree)) << name;
  };
  refused("absolute", [](const fs::path& t) { fs::create_symlink("/etc/passwd", t / "l"); });
  refused("upwards", [](const fs::path& t) { fs::create_symlink("../x", t / "l"); });
  refused("deep", [](const fs::path& t) { fs::create_symlink("../../../x", t / "p/q/l"); });
  refused("through_another", [](const fs::path& t) {
    fs::create_symlink("../..", t / "p/q/root");
    fs::create_symlink("p/q/root/../secret", t / "l");  // as a text it stays inside
  });
  refused("chain", [](const fs::path& t) {
    fs::create_symlink("m", t / "l");
    fs::create_symlink("/usr/bin", t / "m");
  });
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(ArtifactStoreTest, a_cycle_of_links_is_named) {
  const auto tree = folder.path() / "circle";
  fs::create_directories(tree);
  fs::create_symlink("m", tree / "l");
  fs::create_symlink("l", tree / "m");
  EXPECT_THAT([&] { store.take(tree); }, testing::ThrowsMessage<core::EnvironmentError>(
                                             testing::HasSubstr("leads back to itself")));
}

TEST_F(ArtifactStoreTest, absolute_links_into_the_folder_become_relative) {
  const auto tree = folder.path() / "tree";
  fs::create_directories(tree / "p/q");
  write("tree/p/q/file", "x");
  fs::create_symlink("/seen/as/p/q/file", tree / "p/l");
  fs::create_symlink(tree / "p", tree / "p/q/up");
  fs::create_symlink("p/q/up/l", tree / "chain");
  fs::create_symlink(tree, tree / "self");
  fs::create_symlink("../../tree/p/q/file", tree / "p/back");
  fs::create_symlink("../as/p", tree / "again");
  fs::permissions(tree / "p", fs::perms(0555));
  const auto stored = store.path(store.take(tree, {}, "/seen/as").digest);
  EXPECT_EQ(fs::read_symlink(stored / "p/l"), "q/file");
  EXPECT_EQ(fs::read_symlink(stored / "p/q/up"), "..");
  EXPECT_EQ(fs::read_symlink(stored / "self"), ".");
  EXPECT_EQ(fs::read_symlink(stored / "p/back"), "q/file") << "out of the folder and back";
  EXPECT_EQ(fs::read_symlink(stored / "again"), "p");
  EXPECT_EQ(fs::file_size(stored / "chain"), 1u);
  EXPECT_TRUE(store.verify(store.all().at(0)));
}

TEST_F(ArtifactStoreTest, special_files_are_refused) {
  const auto link = folder.path() / "link";
  fs::create_symlink("/etc/passwd", link);
  EXPECT_THROW(store.take(link), core::EnvironmentError);
  EXPECT_THROW(store.take(folder.path() / "missing"), core::EnvironmentError);
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(store.take(pipe), core::EnvironmentError);
  fs::create_directory(folder.path() / "with_pipe");
  ASSERT_EQ(::mkfifo((folder.path() / "with_pipe/p").c_str(), 0600), 0);
  EXPECT_THROW(store.take(folder.path() / "with_pipe"), core::EnvironmentError);
}

TEST_F(ArtifactStoreTest, no_file_has_the_digest_of_a_folder) {
  core::Hasher hasher;
  const auto empty_tree = store.take([&] {
    fs::create_directory(folder.path() / "empty");
    return folder.path() / "empty";
  }());
  EXPECT_NE(hasher.field("pipe tree 1").finish(), empty_tree.digest);
}

TEST_F(ArtifactStoreTest, file_under_a_second_name_is_copied_so_that_no_writer_reaches_the_store) {
  const auto mine = write("mine", "v1");
  fs::create_hard_link(mine, folder.path() / "out");
  const auto taken = store.take(folder.path() / "out");
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
  std::ofstream(mine) << "v2";
  EXPECT_EQ(core::read_file(store.path(taken.digest)), "v1");
  EXPECT_TRUE(store.verify(taken.digest));
  EXPECT_EQ(taken.way, "copied, because it has a second name");
  EXPECT_EQ(store.take(write("other", "v3")).way, "moved");
  EXPECT_EQ(store.take(write("other", "v3")).way, "in the store before");
}

TEST_F(ArtifactStoreTest, output_on_another_file_system_is_copied) {
  struct stat here {
  }, there{};
  ASSERT_EQ(::stat(folder.path().c_str(), &here), 0);
  if (::stat("/dev/shm", &there) != 0 || here.st_dev == there.st_dev)
    GTEST_SKIP() << "/dev/shm is no file system of its own";
  const core::TemporaryFolder elsewhere("/dev/shm");
  std::ofstream(elsewhere.path() / "file") << "content";
  fs::create_directories(elsewhere.path() / "tree/sub");
  std::ofstream(elsewhere.path() / "tree/sub/x") << "x";
  std::vector<core::Digest> known;
  const auto note = [&](const StoredArtifact& artifact) { known.push_back(artifact.digest); };
  const auto file = store.take(elsewhere.path() / "file", note),
             tree = store.take(elsewhere.path() / "tree", note);
  EXPECT_EQ(known, (std::vector{file.digest, tree.digest})) << "each is told once";
  EXPECT_TRUE(store.verify(file.digest));
  EXPECT_TRUE(store.verify(tree.digest));
  EXPECT_EQ(file.way, "copied, because it is on another file system");
  EXPECT_EQ(tree.way, file.way);
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(ArtifactStoreTest, files_of_another_user_are_copied) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto file = write("file", "of another");
  const auto tree = write_tree("tree");
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chown((tree / "a.txt").c_str(), 12345, 12345), 0);
  const auto taken = store.take(file);
  EXPECT_TRUE(store.verify(taken.digest));
  EXPECT_TRUE(store.verify(store.take(tree).digest));
  struct stat status {};
  ASSERT_EQ(::stat(store.path(taken.digest).c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());
  EXPECT_EQ(taken.way, "copied, because another user owns it");
}

TEST_F(ArtifactStoreTest, folder_that_cannot_be_read_is_an_error_that_names_it) {
  fs::permissions(folder.path(), fs::perms(0777));
  EXPECT_EQ(as_nobody([&] {
              const auto mine = folder.path() / "nobody";
              fs::create_directories(mine / "tree/locked");
              fs::permissions(mine / "tree/locked", fs::perms(0));
              ArtifactStore own(mine / "store");
              try {
                own.take(mine / "tree");
              } catch (const core::EnvironmentError& error) {
                return std::string(error.what()).find("tree/locked: Permission denied") !=
                                   std::string::npos &&
                               !error.advice().empty()
                           ? 0
                           : 1;
              }
              return 2;
            }),
            0);
}

TEST_F(ArtifactStoreTest,
       folders_of_a_user_without_privileges_are_removed_without_a_change_of_modes) {
  fs::permissions(folder.path(), fs::perms(0777));
  EXPECT_EQ(as_nobody([&] {
              const auto mine = folder.path() / "nobody";
              fs::create_directories(mine / "tree/sub");
              std::ofstream(mine / "tree/sub/x") << "x";
              ArtifactStore(mine / "store").take(mine / "tree");
              std::error_code error;
              fs::remove_all(mine, error);
              return error.value();
            }),
            0);
}

TEST_F(ArtifactStoreTest, works_for_a_user_without_privileges) {
  fs::permissions(folder.path(), fs::perms(0777));
  EXPECT_EQ(as_nobody([&] {
              const auto mine = folder.path() / "nobody";
              ArtifactStore own(mine / "store");
              for (int round = 0; round < 2; ++round) {
                fs::create_directories(mine / "tree/sub");
                std::ofstream(mine / "tree/sub/x") << "x";
                ::chmod((mine / "tree/sub").c_str(), 0555);
                const auto taken = own.take(mine / "tree");
                if (!own.looks_whole(taken.digest) || !own.verify(taken.digest) ||
                    fs::exists(mine / "tree"))
                  return 1;
                if (round == 1 && (own.collect([](const core::Digest&) { return false; }) != 1 ||
                                   own.has(taken.digest)))
                  return 2;
              }
              return 0;
            }),
            0);
}

TEST_F(ArtifactStoreTest, tree_from_files_has_the_digest_of_an_equal_folder) {
  write("src/a.py", "a");
  write("src/lib/b.py", "b");
  fs::permissions(folder.path() / "src/lib/b.py", fs::perms(0755));
  StatIndex index(folder.path() / "index");
  const std::vector<TreeEntry> entries = {{"lib/b.py", folder.path() / "src/lib/b.py"},
                                          {"a.py", folder.path() / "src/a.py"}};
  const auto put = store.put_tree(entries, index);
  EXPECT_TRUE(store.verify(put.digest));
  EXPECT_TRUE(fs::exists(folder.path() / "src/a.py")) << "put_tree copies";
  EXPECT_EQ(store.put_tree(entries, index).digest, put.digest);
  EXPECT_EQ(store.take(folder.path() / "src").digest, put.digest);
  EXPECT_EQ(put.bytes, 2u);
}

TEST_F(ArtifactStoreTest, tree_from_files_refuses_places_outside) {
  const auto source = write("x", "x");
  StatIndex index(folder.path() / "index");
  for (const std::string place :
       {"", "/etc/x", "../x", "a/../../x", "a//b", "./x", "a/", "..", "a/."}) {
    const TreeEntry entry{place, source};
    EXPECT_THROW(store.put_tree({&entry, 1}, index), core::EnvironmentError) << place;
  }
  const TreeEntry twice[] = {{"a", source}, {"a", source}},
                  both[] = {{"a", source}, {"a/b", source}};
  EXPECT_THROW(store.put_tree(twice, index), core::EnvironmentError);
  EXPECT_THROW(store.put_tree(both, index), core::EnvironmentError);
}

TEST_F(ArtifactStoreTest, copying_out_gives_writable_files_and_replaces_nothing) {
  const auto tree = store.take(write_tree("tree"));
  store.copy_out(tree.digest, folder.path() / "copy");
  EXPECT_EQ(core::read_file(folder.path() / "copy/link"), "beta");
  EXPECT_NE(mode(folder.path() / "copy/a.txt") & 0200, 0u);
  EXPECT_NE(mode(folder.path() / "copy/sub") & 0200, 0u);
  EXPECT_NE(mode(folder.path() / "copy/sub/b.txt") & 0100, 0u);
  EXPECT_THROW(store.copy_out(tree.digest, folder.path() / "copy"), core::InputError);
  const auto file = store.take(write("out", "x"));
  EXPECT_THROW(store.copy_out(file.digest, write("there", "mine")), core::InputError);
  EXPECT_EQ(core::read_file(folder.path() / "there"), "mine");
  EXPECT_THROW(store.copy_out(core::sha256("nothing"), folder.path() / "nothing"),
               core::EnvironmentError);
  fs::permissions(store.path(file.digest), fs::perms(0644));
  std::ofstream(store.path(file.digest)) << "y";
  EXPECT_THROW(store.copy_out(file.digest, folder.path() / "damaged"), core::EnvironmentError);
  EXPECT_FALSE(fs::exists(folder.path() / "damaged"));
}

TEST_F(ArtifactStoreTest, collecting_removes_only_unused_artifacts) {
  const auto kept = store.take(write("kept", "kept"));
  const auto file = store.take(write("file", "12345"));
  const auto tree = store.take(write_tree("tree"));
  write("store/README", "not ours");
  EXPECT_EQ(store.collect([&](const core::Digest& digest) { return digest == kept.digest; }), 19u);
  EXPECT_TRUE(store.verify(kept.digest));
  EXPECT_FALSE(store.has(file.digest));
  EXPECT_FALSE(store.has(tree.digest));
  EXPECT_TRUE(fs::exists(folder.path() / "store/README"));
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(ArtifactStoreTest, collecting_follows_no_link_to_a_folder_of_others) {
  const auto kept = store.take(write("kept", "kept"));
  write("theirs/file", "not ours");
  const auto unused = core::sha256("unused").hex();
  write("shelf/" + unused.substr(2), "not ours");
  for (const auto& [name, target] :
       {std::pair("damaged", "theirs"), std::pair(unused.substr(0, 2).c_str(), "shelf")})
    fs::create_directory_symlink(folder.path() / target, folder.path() / "store" / name);
  store.collect([](const core::Digest&) { return true; });
  store.collect([&](const core::Digest& digest) { return digest == kept.digest; });
  EXPECT_TRUE(fs::exists(folder.path() / "theirs/file"));
  EXPECT_TRUE(fs::exists(folder.path() / "shelf" / unused.substr(2)));
}

TEST_F(ArtifactStoreTest, many_processes_may_take_equal_things_at_once) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      int result = 1;
      try {
        for (int round = 0; round < 40; ++round) {
          const auto name = std::to_string(i) + "-" + std::to_string(round);
          store.take(write(name, "content " + std::to_string(round)));
          const auto tree = write_tree(name + "-tree");
          write(name + "-tree/round", std::to_string(round));
          store.take(tree);
        }
        result = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(result);
    }
    children.push_back(child);
  }
  for (const auto child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::size_t count = 0;
  store.collect([&](const core::Digest& digest) {
    ++count;
    EXPECT_TRUE(store.verify(digest));
    return true;
  });
  EXPECT_EQ(count, 80u);
  EXPECT_FALSE(fs::exists(folder.path() / "store/damaged"));
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(ArtifactStoreTest, cheap_check_reads_no_content) {
  const auto taken = store.take(write("out", std::string(1000, 'x')));
  fs::permissions(store.path(taken.digest), fs::perms(0));
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_EQ(as_nobody([&] { return store.looks_whole(taken.digest) ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace pipeline::store
