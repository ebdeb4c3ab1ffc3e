#include "orchestrators/slurm/squashfs_files.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "orchestrators/slurm/pulled_images.hpp"
#include "support/attempt_builder.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

TEST(SquashfsFiles, a_record_of_an_image_lasts_as_long_as_its_file_and_the_newest_counts) {
  const core::TemporaryFolder cache;
  setenv("PIPE_CACHE_DIR", cache.path().c_str(), 1);
  core::make_folders(squashfs_folder());
  const auto one = squashfs_file(std::string(64, '1')), two = squashfs_file(std::string(64, '2'));
  record_image(one, "debian:12 ", "first");
  EXPECT_EQ(recorded_image("debian:12 "), "");  // There is no file.
  core::write_file_atomically(one, "x");
  core::write_file_atomically(two, "x");
  EXPECT_EQ(recorded_image("debian:12 "), "first");
  EXPECT_EQ(recorded_image("debian:12 linux/arm64"), "");
  record_image(one, "other", "of another name");
  record_image(two, "debian:12 ", "second");
  EXPECT_EQ(recorded_image("debian:12 "), "second");
  EXPECT_EQ(squashfs_files().size(), 2U);
  EXPECT_TRUE(remove_squashfs(two));
  EXPECT_EQ(recorded_image("debian:12 "), "");
  EXPECT_EQ(recorded_image("other"), "of another name");
  EXPECT_TRUE(remove_squashfs(one));
  EXPECT_TRUE(core::entries_of(squashfs_folder()).empty());
  unsetenv("PIPE_CACHE_DIR");
}

TEST(PulledImages, a_fingerprint_matches_while_the_same_parent_image_is_recorded) {
  const core::TemporaryFolder cache;
  setenv("PIPE_CACHE_DIR", cache.path().c_str(), 1);
  core::make_folders(squashfs_folder());
  test::AttemptBuilder attempt(test::program({"true"}));
  auto& docker = attempt.step.settings->docker;
  docker.parent_image = "debian:12";
  EXPECT_EQ(PulledImages::fingerprint_of(attempt.step), "");  // Nothing is known of it.
  const auto file = squashfs_file(std::string(64, '1'));
  core::write_file_atomically(file, "x");
  record_image(file, "debian:12 ", "first");
  const auto fingerprint = PulledImages::fingerprint_of(attempt.step);
  EXPECT_TRUE(PulledImages::matches(fingerprint));
  EXPECT_FALSE(PulledImages::matches(""));
  record_image(file, "debian:12 ", "second");
  EXPECT_FALSE(PulledImages::matches(fingerprint));
  record_image(file, "debian:12 ", "first");
  EXPECT_TRUE(PulledImages::matches(fingerprint));
  docker.pyproject_path = "pyproject.toml";  // Its content counts, too.
  EXPECT_EQ(PulledImages::fingerprint_of(attempt.step), "");
  docker.pyproject_path.reset();
  docker.parent_image = "oci-archive:image.tar";
  record_image(file, "oci-archive:image.tar ", "first");
  EXPECT_EQ(PulledImages::fingerprint_of(attempt.step), "");
  EXPECT_TRUE(remove_squashfs(file));
  EXPECT_FALSE(PulledImages::matches(fingerprint));
  unsetenv("PIPE_CACHE_DIR");
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
