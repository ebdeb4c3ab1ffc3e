// The nodes that pods prefer for what the caches there hold.
#include "orchestrators/kubernetes/node_contents.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint64_t mebibyte = 1 << 20;

class NodeContentsTest : public testing::Test {
 protected:
  static AttemptInput stored(const std::string& digest, std::uint64_t bytes) {
    AttemptInput input{.name = digest, .file_name = digest, .path = "/none", .digest = digest};
    input.elsewhere = model::Elsewhere{.bytes = bytes, .store = {}};
    return input;
  }
  AttemptSpec attempt(std::vector<AttemptInput> inputs) const {
    return {.step = step,
            .pipeline = "p",
            .run_id = "r",
            .number = 1,
            .code = "/code",
            .inputs = std::move(inputs),
            .outputs = "/out",
            .output_names = {},
            .scratch = "/scratch",
            .environment = {},
            .secrets = {},
            .gpus = {}};
  }
  StepSpec step;
  NodeContents contents;
};

TEST_F(NodeContentsTest, nodes_are_weighted_by_their_share_of_the_bytes) {
  const auto large = stored("a", 60 * mebibyte), small = stored("b", 40 * mebibyte);
  EXPECT_THAT(contents.holders(attempt({large, small})), IsEmpty());
  contents.note(attempt({large}), "node-1");
  contents.note(attempt({small}), "node-2");
  contents.note(attempt({large, small}), "node-3");
  contents.note(attempt({small}), "node-4");
  contents.note(attempt({large}), "");
  EXPECT_THAT(contents.holders(attempt({large, small})),
              ElementsAre(Pair(20, ElementsAre("node-2", "node-4")),
                          Pair(30, ElementsAre("node-1")), Pair(50, ElementsAre("node-3"))));
  EXPECT_THAT(contents.holders(attempt({stored("c", 1000 * mebibyte), small})), IsEmpty())
      << "less than a tenth";
}

TEST_F(NodeContentsTest, small_inputs_make_no_node_preferred) {
  const auto input = stored("a", 15 * mebibyte);
  contents.note(attempt({input}), "node-1");
  EXPECT_THAT(contents.holders(attempt({input})), IsEmpty());
}

TEST_F(NodeContentsTest, files_of_this_machine_and_pieces_of_a_gather_count) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "data";
  core::write_file_atomically(file, "");
  std::filesystem::resize_file(file, 20 * mebibyte);
  const AttemptInput input{.name = "x", .file_name = "x", .path = file, .digest = "x"};
  AttemptInput all{.name = "all", .file_name = "all", .path = folder.path()};
  all.pieces.push_back(
      {.file = "1", .digest = core::sha256("p1"), .bytes = 20 * mebibyte, .is_elsewhere = true});
  all.pieces.push_back({.file = "data", .digest = core::sha256("p2")});
  contents.note(attempt({input, all}), "node-1");
  EXPECT_THAT(contents.holders(attempt({input})), ElementsAre(Pair(50, ElementsAre("node-1"))));
  EXPECT_THAT(contents.holders(attempt({all})), ElementsAre(Pair(50, ElementsAre("node-1"))));
}

TEST_F(NodeContentsTest, no_node_is_preferred_once_nearly_all_are) {
  const auto input = stored("a", 20 * mebibyte);
  for (int i = 0; i <= 100; ++i) contents.note(attempt({input}), "node-" + std::to_string(i));
  EXPECT_THAT(contents.holders(attempt({input})), IsEmpty());
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
