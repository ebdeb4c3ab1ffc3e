#include "vcs/repository.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/file.hpp"
#include "core/reading_stop.hpp"
#include "core/scope_guard.hpp"

namespace pipeline::vcs {
namespace {

class RepositoryTest : public ::testing::Test {
 protected:
  void git(const std::string& arguments) {
    const auto command =
        "cd '" + root.path().string() +
        "' && git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main " +
        arguments + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root.path() / name).parent_path());
    std::ofstream(root.path() / name) << text;
  }
  core::TemporaryFolder root;
};

TEST_F(RepositoryTest, folder_outside_of_a_repository_has_no_state) {
  EXPECT_FALSE(source_state(root.path()));
}

TEST_F(RepositoryTest, repository_without_commits_has_an_empty_commit) {
  git("init");
  const auto state = source_state(root.path());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->commit, "");
}

TEST_F(RepositoryTest, tracked_files_are_those_of_the_index_below_the_folder) {
  EXPECT_TRUE(tracked_files(root.path()).empty());
  git("init");
  EXPECT_TRUE(tracked_files(root.path()).empty());
  for (const char* path : {"pipeline/b.py", "pipeline/a/c.py", "pipeline/untracked", "other.py"})
    write(path, "1");
  git("add pipeline/b.py pipeline/a other.py");
  EXPECT_EQ(tracked_files(root.path() / "pipeline"), (std::vector<std::string>{"a/c.py", "b.py"}));
  EXPECT_EQ(tracked_files(root.path()),
            (std::vector<std::string>{"other.py", "pipeline/a/c.py", "pipeline/b.py"}));
}

TEST_F(RepositoryTest, files_of_submodules_are_tracked_and_their_changes_make_it_dirty) {
  git("init lib");
  write("lib/models/net.py", "1");
  git("-C lib add .");
  git("-C lib commit -m first");
  git("init repo");
  git("-c protocol.file.allow=always -C repo submodule add ../lib external");
  git("-C repo commit -m first");
  const auto repo = root.path() / "repo";
  EXPECT_EQ(tracked_files(repo),
            (std::vector<std::string>{".gitmodules", "external", "external/models/net.py"}));
  EXPECT_TRUE(is_submodule(repo / "external"));
  EXPECT_FALSE(is_submodule(repo / "external/models"));
  EXPECT_FALSE(source_state(repo)->dirty);
  write("repo/external/models/net.py", "2");
  EXPECT_TRUE(source_state(repo)->dirty);
  git("-C repo/external commit -a -m second");
  EXPECT_TRUE(source_state(repo)->dirty) << "another commit of the submodule";
}

TEST_F(RepositoryTest, commit_and_dirtiness_are_those_of_git) {
  git("init");
  write("pipeline/a.py", "1");
  write(".gitignore", "*.log\n");
  git("add . && git -c user.name=t -c user.email=t@example.org commit -m first");
  auto state = source_state(root.path() / "pipeline");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->commit.size(), 40u);
  EXPECT_FALSE(state->dirty);

  write("pipeline/x.log", "ignored");
  EXPECT_FALSE(source_state(root.path() / "pipeline")->dirty);
  write("elsewhere.py", "not below the folder");
  EXPECT_FALSE(source_state(root.path() / "pipeline")->dirty);
  EXPECT_TRUE(source_state(root.path())->dirty);
  write("pipeline/new.py", "untracked");
  EXPECT_TRUE(source_state(root.path() / "pipeline")->dirty);
  std::filesystem::remove(root.path() / "pipeline/new.py");
  write("pipeline/a.py", "2");
  EXPECT_TRUE(source_state(root.path() / "pipeline")->dirty);
}

TEST_F(RepositoryTest, credentials_in_the_remote_are_left_out) {
  git("init");
  git("remote add origin https://someone:token@example.org/team/x.git");
  EXPECT_EQ(source_state(root.path())->remote_url, "https://example.org/team/x.git");
}

TEST_F(RepositoryTest, password_with_an_at_sign_is_left_out_as_a_whole) {
  git("init");
  git("remote add origin https://someone:p@ss@example.org/team/x@y.git");
  EXPECT_EQ(source_state(root.path())->remote_url, "https://example.org/team/x@y.git");
}

TEST_F(RepositoryTest, repository_of_another_user_is_not_an_error) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  git("init");
  write("a", "1");
  git("add . && git -c user.name=t -c user.email=t@example.org commit -m first");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root.path()))
    ASSERT_EQ(::lchown(entry.path().c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chown(root.path().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(source_state(root.path())) << "git itself calls its ownership dubious";
}

TEST_F(RepositoryTest, a_stop_at_once_ends_the_comparison_with_the_files) {
  git("init");
  write("a", "1");
  git("add a");
  git("commit -m first");
  core::stop_reading();
  const core::ScopeGuard reset([] { core::permit_reading(); });
  EXPECT_THROW(source_state(root.path()), core::Stopped);
  EXPECT_THROW(tracked_files(root.path()), core::Stopped);
}

TEST_F(RepositoryTest, folders_of_ignored_files_do_not_make_it_dirty) {
  git("init");
  write(".gitignore", "*.log\n");
  git("add .gitignore");
  git("commit -m first");
  write("logs/a.log", "1");
  EXPECT_FALSE(source_state(root.path())->dirty);
  write("logs/a.txt", "1");
  EXPECT_TRUE(source_state(root.path())->dirty);
}

TEST_F(RepositoryTest, damaged_repository_is_not_an_error) {
  git("init");
  write("a", "1");
  git("add . && git -c user.name=t -c user.email=t@example.org commit -m first");
  const auto commit = source_state(root.path())->commit;
  write(".git/HEAD", "nonsense");
  const auto without_head = source_state(root.path());
  ASSERT_TRUE(without_head);
  EXPECT_EQ(without_head->commit, "");
  EXPECT_TRUE(without_head->dirty) << "without a commit, the state is not known to be clean";
  write(".git/HEAD", "ref: refs/heads/main\n");
  write(".git/index", "nonsense");
  const auto without_index = source_state(root.path());
  ASSERT_TRUE(without_index);
  EXPECT_EQ(without_index->commit, commit);
  EXPECT_TRUE(without_index->dirty);
}

TEST_F(RepositoryTest, named_pipes_in_the_place_of_any_file_block_nothing) {
  git("init");
  write("a/.gitignore", "*.log\n");
  write("a/.gitattributes", "*.txt text\n");
  write("a/b.txt", "1");
  write(".git/included", "");
  write(".git/objects/info/alternates", "");
  git("config include.path included");
  git("add . && git -c user.name=t -c user.email=t@example.org commit -m first");
  ASSERT_TRUE(source_state(root.path()));
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::recursive_directory_iterator(root.path()))
    if (each.is_regular_file()) files.push_back(each.path());
  write("a/b.txt", "2");
  ASSERT_GT(files.size(), 20u);
  for (const auto& file : files) {
    SCOPED_TRACE(file);
    const auto kept = root.path() / "kept";
    std::filesystem::rename(file, kept);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    source_state(root.path() / "a");
    tracked_files(root.path());
    sparse_advice(root.path(), "a/none");
    std::filesystem::rename(kept, file);
  }
  EXPECT_TRUE(source_state(root.path())->dirty);
}

TEST_F(RepositoryTest, staged_deleted_and_renamed_files_make_it_dirty) {
  git("init");
  write("a", "1");
  write("b c/ü", "1");
  git("add . && git -c user.name=t -c user.email=t@example.org commit -m first");
  EXPECT_FALSE(source_state(root.path() / "b c")->dirty);
  git("rm -q --cached 'b c/ü'");
  EXPECT_TRUE(source_state(root.path() / "b c")->dirty);
  git("add .");
  EXPECT_FALSE(source_state(root.path() / "b c")->dirty);
  std::filesystem::remove(root.path() / "b c/ü");
  EXPECT_TRUE(source_state(root.path() / "b c")->dirty);
}

}  // namespace
}  // namespace pipeline::vcs
