#include "blobs/key_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blobs/remote_artifacts.hpp"

namespace pipeline::blobs {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

std::string in_capitals(std::string key) {
  for (auto& letter : key)
    if (letter >= 'a' && letter <= 'f') letter = static_cast<char>(letter - 'a' + 'A');
  return key;
}

TEST(KeySetTest, every_key_keeps_its_text) {
  const auto hex = core::sha256("a").hex();
  const auto file = RemoteArtifacts::key_of(hex, false), tree = RemoteArtifacts::key_of(hex, true);
  const std::vector<std::string> keys{file,
                                      tree,
                                      file + "0",
                                      tree + ".tar",
                                      "x" + file,
                                      file.substr(1),
                                      in_capitals(file),
                                      file.substr(0, file.size() - 1) + "x",
                                      "artifacts/" + hex,
                                      "artifacts/.tar",
                                      ".tar",
                                      "results/a.json",
                                      ""};
  KeySet set;
  for (const auto& key : keys) {
    EXPECT_FALSE(set.contains(key)) << key;
    set.insert(key);
    set.insert(key);
    EXPECT_TRUE(set.contains(key)) << key;
  }
  EXPECT_THAT(set.keys(), UnorderedElementsAreArray(keys));
  EXPECT_EQ(set.size(), keys.size());
  for (const auto& key : keys) {
    set.erase(key);
    EXPECT_FALSE(set.contains(key)) << key;
  }
  EXPECT_THAT(set.keys(), IsEmpty());
}

}  // namespace
}  // namespace pipeline::blobs
