#include <sys/stat.h>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pipeline::test
