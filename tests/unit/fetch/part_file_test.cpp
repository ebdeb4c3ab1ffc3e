#include "fetch/part_file.hpp"

#include <fstream>
#include <utility>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pipeline::fetch {
namespace {

constexpr std::uint64_t part_size = 8 << 20;

class AFileOfParts : public testing::Test {
 protected:
  PartFile opened(bool is_verified = true) {
    PartFile file(path, is_verified);
    EXPECT_TRUE(file.try_lock());
    file.load();
    return file;
  }
  core::TemporaryFolder folder;
  std::filesystem::path path = folder.path() / "x";
};

TEST_F(AFileOfParts, has_a_thousand_parts_at_most) {
  EXPECT_EQ(part_size_of(1), part_size);
  EXPECT_EQ(part_size_of(std::uint64_t{1} << 30), part_size);
  const auto large = std::uint64_t{1} << 40;
  EXPECT_EQ(part_size_of(large) * 1024, large);
}

TEST_F(AFileOfParts, is_continued_by_another_instance_at_each_parts_end) {
  {
    auto file = opened(false);
    file.plan(3 * part_size - 5);
    EXPECT_EQ(file.parts(), 3u);
    EXPECT_EQ(file.take(), 0u);
    EXPECT_EQ(file.take(), 1u);
    file.write(1, std::string(1 << 20, 'b'));
    file.write(0, std::string(part_size, 'a'));
  }
  auto file = opened(false);
  EXPECT_EQ(file.received(), part_size + (1 << 20));
  EXPECT_EQ(file.take(), 1u);
  EXPECT_EQ(file.missing(1).begin, part_size + (1 << 20));
  file.write(1, std::string(part_size, 'b'));  // More than it lacks.
  EXPECT_EQ(file.take(), 2u);
  EXPECT_EQ(file.missing(2).end, 3 * part_size - 5);
  file.write(2, std::string(part_size, 'c'));
  EXPECT_TRUE(file.is_complete());
  EXPECT_FALSE(file.take());
  file.forget_progress();
  EXPECT_EQ(core::read_file(path), std::string(part_size, 'a') + std::string(part_size, 'b') +
                                       std::string(part_size - 5, 'c'));
}

TEST_F(AFileOfParts, keeps_bytes_received_as_a_stream_once_parts_are_planned) {
  auto file = opened();
  file.append(std::string(part_size + 10, 'a'));
  file.plan(2 * part_size);
  EXPECT_EQ(file.part_of(part_size + 10), 1u);
  EXPECT_EQ(file.take(), 1u);
  EXPECT_EQ(file.missing(1).begin, part_size + 10);
}

TEST_F(AFileOfParts, whose_progress_is_damaged_begins_again) {
  for (const char* text : {"", "rubbish", "pipe parts 1 99999999999999999999999 x\n",
                           "pipe parts 1 20000000 another-boot\n00000000000000000001\n",
                           "pipe parts 1 20000000 x\n00000000000099999999\n"}) {
    std::ofstream(path) << "some content";
    std::ofstream(path.string() + ".parts") << text;
    auto file = opened(false);
    EXPECT_FALSE(file.is_planned());
    EXPECT_EQ(file.received(), 0u) << text;
  }
}

TEST_F(AFileOfParts, is_trusted_without_its_progress_only_if_it_will_be_verified) {
  std::ofstream(path) << "begin";
  EXPECT_EQ(opened(true).size(), 5u);
  EXPECT_EQ(opened(false).size(), 0u);
}

TEST_F(AFileOfParts, belongs_to_a_single_process_also_after_another_has_removed_it) {
  PartFile first(path, true), second(path, true);
  EXPECT_TRUE(first.try_lock());
  EXPECT_FALSE(second.try_lock());
  first.remove();
  { const PartFile gone = std::move(first); }
  EXPECT_FALSE(second.try_lock()) << "the lock of a removed file does not count";
  EXPECT_TRUE(second.try_lock());
  PartFile third(path, true);
  EXPECT_FALSE(third.try_lock());
}

TEST_F(AFileOfParts, without_bytes_is_complete) {
  auto file = opened();
  file.plan(0);
  EXPECT_TRUE(file.is_complete());
}

TEST_F(AFileOfParts, that_does_not_fit_on_the_disk_is_refused) {
  auto file = opened();
  EXPECT_THROW(file.plan(std::uint64_t{1} << 62), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::fetch
