#include <gtest/gtest.h>

#include <fstream>

#include <sys/stat.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::store {
namespace {

namespace fs = std::filesystem;

class StatIndexTest : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(file) << text; }
  core::TemporaryFolder folder;
  fs::path file = folder.path() / "file", index = folder.path() / "index";
};

TEST_F(StatIndexTest, digest_is_that_of_the_content_after_every_change) {
  StatIndex stats(index);
  for (int i = 0; i < 200; ++i) {
    const std::string text =
        "content " + std::to_string(i % 10);  // the same size, within one tick of the clock
    write(text);
    ASSERT_EQ(stats.digest(file), core::sha256(text)) << i;
  }
}

TEST_F(StatIndexTest, missing_file_is_an_error_that_names_it) {
  StatIndex stats(index);
  try {
    stats.digest(folder.path() / "missing");
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("missing: No such file"), std::string::npos);
  }
}

TEST_F(StatIndexTest, a_file_that_is_almost_only_holes_is_refused_before_it_is_read) {
  StatIndex stats(index);
  write("begins");
  fs::resize_file(file, std::uintmax_t{8} << 40);
  fs::create_symlink(file, folder.path() / "link");
  for (const auto& each : {file, folder.path() / "link"}) try {
      stats.digest(each);
      FAIL() << each;
    } catch (const core::EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find(each.string() + ": it is sparse"),
                std::string::npos);
    }
}

TEST_F(StatIndexTest, young_files_are_not_kept) {
  write("x");
  StatIndex stats(index);
  stats.digest(file);
  stats.save();
  EXPECT_FALSE(fs::exists(index));
}

TEST_F(StatIndexTest, old_files_are_not_read_again_and_a_damaged_index_costs_only_time) {
  write("x");
  {
    // The time of the last change of status cannot be set back, but the clock can be ahead.
    StatIndex stats(index, [] { return std::chrono::system_clock::now() + std::chrono::hours(1); });
    EXPECT_EQ(stats.digest(file), core::sha256("x"));
    stats.save();
  }
  ASSERT_TRUE(fs::exists(index));
  const auto good = core::read_file(index);
  // A wrong digest in it shows that it is used.
  auto forged = good.substr(0, good.size() - 32);
  forged.back() = static_cast<char>(forged.back() ^ 1);
  const auto sum = core::sha256(forged);
  core::write_file_atomically(
      index, forged + std::string(reinterpret_cast<const char*>(sum.bytes.data()), 32));
  EXPECT_NE(StatIndex(index).digest(file), core::sha256("x"));
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    core::write_file_atomically(index, damaged);
    ASSERT_EQ(StatIndex(index).digest(file), core::sha256("x")) << "byte " << i;
    core::write_file_atomically(index, good.substr(0, i));
    ASSERT_EQ(StatIndex(index).digest(file), core::sha256("x")) << "cut at " << i;
  }
  core::write_file_atomically(index, good);
  StatIndex stats(index);
  EXPECT_EQ(stats.digest(file), core::sha256("x"));
  write("y");
  EXPECT_EQ(stats.digest(file), core::sha256("y"));
}

}  // namespace
}  // namespace pipeline::store
