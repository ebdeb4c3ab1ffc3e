#include "engine/attempt/checkpoint.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointFolder, is_replaced_at_once_and_stays_locked) {
  const core::TemporaryFolder state;
  const auto kept = Checkpoint::open(state.path(), "1a2b");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->key(), "1a2b");
  core::write_file_atomically(kept->folder() / "old", "x");
  const auto fresh = state.path() / "fresh";
  core::make_folders(fresh / "deep");
  core::write_file_atomically(fresh / "deep/new", "y");
  kept->replace(fresh);
  EXPECT_FALSE(fs::exists(kept->folder() / "old"));
  EXPECT_EQ(core::read_file(kept->folder() / "deep/new"), "y");
  EXPECT_FALSE(fs::exists(fresh));
  EXPECT_EQ(Checkpoint::open(state.path(), "1a2b"), nullptr) << "another driver does not take it";
}

TEST(CheckpointFolder, stays_as_it_is_if_it_cannot_be_replaced) {
  const core::TemporaryFolder state;
  const auto kept = Checkpoint::open(state.path(), "1a2b");
  core::write_file_atomically(kept->folder() / "old", "x");
  EXPECT_THROW(kept->replace(state.path() / "none"), core::EnvironmentError);
  EXPECT_EQ(core::read_file(kept->folder() / "old"), "x");
}

}  // namespace
}  // namespace pipeline::engine
