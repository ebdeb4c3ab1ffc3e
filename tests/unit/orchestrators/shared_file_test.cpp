#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "orchestrators/shared_file.hpp"

namespace pipeline::test {
namespace {

namespace fs = std::filesystem;

mode_t mode_of_file(const fs::path& file) {
  struct stat status {};
  EXPECT_EQ(::stat(file.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(SharedFile, is_written_with_its_mode_in_a_new_folder) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "programs" / "agent";
  orchestrators::write_shared_file(file, "program", orchestrators::program_mode);
  EXPECT_EQ(core::read_file(file), "program");
  EXPECT_EQ(mode_of_file(file), 0555u);
  EXPECT_EQ(core::entries_of(file.parent_path()).size(), 1u);
}

TEST(SharedFile, that_exists_stays_unchanged) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "agent";
  core::write_file_atomically(file, "first");
  orchestrators::write_shared_file(file, "second", orchestrators::program_mode);
  EXPECT_EQ(core::read_file(file), "first");
}

TEST(SharedFile, leaves_that_of_another_machines_process_with_the_same_id) {
  const core::TemporaryFolder folder;
  const auto unfinished = folder.path() / ("agent." + std::to_string(::getpid()));
  core::write_file_atomically(unfinished, "of the other machine");
  orchestrators::write_shared_file(folder.path() / "agent", "program", orchestrators::program_mode);
  EXPECT_EQ(core::read_file(folder.path() / "agent"), "program");
  EXPECT_EQ(core::read_file(unfinished), "of the other machine");
}

TEST(SharedFile, that_cannot_be_written_leaves_nothing) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "agent" / "";  // A path with a slash at its end is a folder's.
  EXPECT_THROW(orchestrators::write_shared_file(file, "program", orchestrators::program_mode),
               core::EnvironmentError);
  EXPECT_TRUE(core::entries_of(folder.path() / "agent").empty());
}

}  // namespace
}  // namespace pipeline::test
