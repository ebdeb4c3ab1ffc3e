#include "blobs/compact_key.hpp"

#include <set>

#include <gtest/gtest.h>

#include "blobs/remote_artifacts.hpp"

namespace pipeline::blobs {
namespace {

TEST(CompactKeyTest, every_key_keeps_its_text) {
  const auto hex = core::sha256("a").hex();
  const auto file = RemoteArtifacts::key_of(hex, false), tree = RemoteArtifacts::key_of(hex, true);
  auto capitals = file;
  for (auto& letter : capitals)
    if (letter >= 'a' && letter <= 'f') letter = static_cast<char>(letter - 'a' + 'A');
  auto no_digit = file;
  no_digit.back() = 'x';
  auto no_slash = file;
  no_slash[12] = '0';
  for (const auto& key : {file, tree, file + "0", tree + ".tar", capitals, no_digit, no_slash,
                          std::string("results/a.json"), std::string()})
    EXPECT_EQ(CompactKey(key).text(), key);
}

TEST(CompactKeyTest, a_file_and_a_folder_of_one_digest_differ) {
  const auto hex = core::sha256("a").hex();
  const std::set<CompactKey> keys{CompactKey(RemoteArtifacts::key_of(hex, false)),
                                  CompactKey(RemoteArtifacts::key_of(hex, true)),
                                  CompactKey(RemoteArtifacts::key_of(hex, true))};
  EXPECT_EQ(keys.size(), 2u);
}

TEST(CompactKeyTest, takes_no_more_than_a_text_without_its_characters) {
  EXPECT_LE(sizeof(CompactKey), sizeof(std::string) + sizeof(void*));
}

}  // namespace
}  // namespace pipeline::blobs
