// The tar of a build context, read back with tar itself.
#include <cstdlib>
#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/context.hpp"
#include "python_packages/requirements.hpp"

namespace pipeline::docker {
namespace {

namespace fs = std::filesystem;

std::string drained(file_tree::TarSource source, std::size_t block = 1000) {
  std::string all, buffer(block, '\0');
  while (auto count = source(buffer)) all.append(buffer, 0, count);
  return all;
}

struct Contexts : testing::Test {
  core::TemporaryFolder folder;
  fs::path root = folder.path() / "root";
  Contexts() { fs::create_directories(root); }
  void put(const std::string& name, const std::string& content) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << content;
  }
  std::string unpacked(const std::string& tar) {
    std::ofstream(folder.path() / "x.tar", std::ios::binary) << tar;
    fs::create_directories(folder.path() / "out");
    python_packages::output_of({"tar", "-xf", "x.tar", "-C", "out"}, folder.path());
    return python_packages::output_of({"tar", "-tvf", "x.tar", "--full-time", "--numeric-owner"},
                                      folder.path());
  }
};

TEST_F(Contexts, a_local_package_that_is_missing_is_an_error) {
  put("here.whl", "12345");
  EXPECT_EQ(size_of(local_files("./here.whl", root, {})), 5u);
  try {
    local_files("./gone.whl", root, {});
    ADD_FAILURE() << "the missing package was accepted";
  } catch (const core::InputError& error) {
    EXPECT_EQ(error.diagnostics().front().message,
              "the local package ./gone.whl cannot be read: No such file or directory");
  }
}

TEST_F(Contexts, no_file_that_pipe_writes_is_in_one) {
  put("Dockerfile", "FROM scratch");
  put("poetry.lock", "# This file is of Poetry.\n");
  const std::string lock =
      "# The packages that the environments of this pipeline's steps consist of. `pipe` writes\n";
  for (const auto* name : {"pipeline.lock", "other.lock", "sub/digits.lock"}) put(name, lock);
  put("pipeline.lock.12.0.tmp", "");
  for (const auto* state : {".pipe", "sub/.pipe", "runs"}) put(std::string(state) + "/pipe.db", "");
  put("runs/logs/a", "x");
  std::string paths, project;
  for (const auto& file : folder_context(root, "", {})) paths += file.path + " ";
  for (const auto& file : project_files(root, {})) project += file.path + " ";
  EXPECT_EQ(paths, "Dockerfile poetry.lock sub ");
  EXPECT_EQ(project, "Dockerfile poetry.lock ");
}

TEST_F(Contexts, a_tar_holds_files_links_and_folders_as_they_are) {
  put("a.txt", "hello");
  put("dir/b.sh", "#!/bin/sh\n");
  put("big", std::string(300'000, 'x') + "end");
  fs::permissions(root / "dir/b.sh", fs::perms(0755));
  fs::create_symlink("../a.txt", root / "dir/link");
  fs::create_directory(root / "empty");
  auto name = std::string(150, 'n') + "-\xc3\xa9";
  put(name, "long");
  auto files = folder_context(root, "", {});
  files.push_back({.path = "generated", .content = "made"});
  auto listing = unpacked(drained(file_tree::tar_stream(files)));
  auto out = folder.path() / "out";
  EXPECT_EQ(core::read_file(out / "a.txt"), "hello");
  EXPECT_EQ(core::read_file(out / "big"), std::string(300'000, 'x') + "end");
  EXPECT_EQ(core::read_file(out / name), "long");
  EXPECT_EQ(core::read_file(out / "generated"), "made");
  EXPECT_EQ(fs::read_symlink(out / "dir/link"), "../a.txt");
  EXPECT_EQ(fs::status(out / "dir/b.sh").permissions(), fs::perms(0755));
  EXPECT_TRUE(fs::is_directory(out / "empty"));
  EXPECT_NE(listing.find(" 0/0 "), listing.npos);
  EXPECT_NE(listing.find("1970-01-01"), listing.npos);
}

TEST_F(Contexts, the_same_files_give_the_same_bytes_whatever_the_readers_blocks) {
  put("a", "1");
  put("b/c", std::string(100'000, 'y'));
  auto files = folder_context(root, "", {});
  auto once = drained(file_tree::tar_stream(files), 7);
  fs::last_write_time(root / "a", fs::file_time_type::clock::now() - std::chrono::hours(48));
  EXPECT_EQ(once, drained(file_tree::tar_stream(folder_context(root, "", {})), 65536));
}

TEST_F(Contexts, a_file_that_vanishes_is_an_error_and_one_that_shrinks_is_filled_up) {
  put("a", "1");
  put("b", "12345");
  auto files = folder_context(root, "", {});
  fs::remove(root / "a");
  EXPECT_THROW(drained(file_tree::tar_stream(files)), core::EnvironmentError);
}

TEST_F(Contexts, ignored_folders_are_not_walked_unless_something_below_is_wanted) {
  put("node_modules/x/y.js", "");
  put("node_modules/keep.js", "");
  put("src/a.c", "");
  put("Dockerfile", "");
  auto names = [&](std::string_view rules) {
    std::string text;
    for (auto& file : folder_context(root, rules, {"Dockerfile"})) text += file.path + " ";
    return text;
  };
  EXPECT_EQ(names("node_modules\nDockerfile\n"), "Dockerfile src src/a.c ");
  EXPECT_EQ(names("node_modules/*\n!node_modules/keep.js\n"),
            "Dockerfile node_modules node_modules/keep.js src src/a.c ");
  EXPECT_EQ(names("*\n"), "Dockerfile ");
  EXPECT_EQ(names("*\n!src\n"), "Dockerfile src src/a.c ");
  EXPECT_EQ(names("**/*.js\n"), "Dockerfile node_modules node_modules/x src src/a.c ");
}

TEST_F(Contexts, a_file_that_is_almost_only_holes_is_refused_before_it_is_read) {
  put("weights", "begins");
  fs::resize_file(root / "weights", std::uintmax_t{8} << 40);
  EXPECT_THROW(folder_context(root, "", {}), core::EnvironmentError);
  EXPECT_TRUE(folder_context(root, "weights", {}).empty());
}

TEST_F(Contexts, ignore_files_that_are_not_regular_have_no_rules) {
  put("a.py", "");
  fs::create_directories(root / ".dockerignore");
  ASSERT_EQ(::mkfifo((root / ".gitignore").c_str(), 0600), 0);
  const auto files = project_files(root, {});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].path, "a.py");
}

TEST_F(Contexts, the_largest_files_are_named) {
  std::vector<ContextFile> files{
      {.path = "a", .bytes = 10}, {.path = "b", .bytes = 3ull << 30}, {.path = "c", .bytes = 2048}};
  EXPECT_EQ(size_of(files), 10 + (3ull << 30) + 2048);
  EXPECT_EQ(largest(files, 2).find("b (3"), 0u) << largest(files, 2);
  EXPECT_NE(largest(files, 2).find(", c (2"), std::string::npos);
}

}  // namespace
}  // namespace pipeline::docker
