// The documents for a pod about inputs that are gathered from many steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "support/attempt_builder.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::run_task;
using testing::StartsWith;
namespace fs = std::filesystem;

class StagedPieces : public test::BucketTest {
 protected:
  StagedPieces() {
    attempt.run_id = "run";
    attempt.code("a.py", "");
  }

  /// An input of so many files, the first of which is a folder.
  AttemptInput gathered(std::size_t count) {
    const auto path = attempt.folder.path() / "all";
    fs::create_directories(path / "0");
    core::write_file_atomically(path / "0/f", "in a folder");
    core::write_file_atomically(path / "index.json", "[]");
    AttemptInput input{.name = "all", .file_name = "all", .path = path};
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = std::to_string(i);
      if (i > 0) core::write_file_atomically(path / name, name);
      input.pieces.push_back({name + "-step", path / name, core::sha256(name).hex()});
    }
    return input;
  }
  json items(std::size_t count) {
    attempt.inputs = {gathered(count)};
    const auto made = attempt.attempt();
    document = run_task(loop, files.stage_in(made)).fetch;
    return json::parse(document).at("items");
  }

  test::AttemptBuilder attempt{test::program({"true"})};
  blobs::RemoteArtifacts artifacts{loop, settings()};
  PodStaging files{artifacts};
  std::string document;
};

TEST_F(StagedPieces, are_one_item_whose_rows_have_the_differences) {
  const auto all = items(3);
  ASSERT_EQ(all.size(), 3u) << "code, pieces and their index";
  const auto& pieces = all.at(1);
  EXPECT_EQ(pieces["to"], "/pipe/inputs/all");
  EXPECT_EQ(pieces["kind"], "pieces");
  const auto key = blobs::RemoteArtifacts::key_of(core::sha256("0").hex(), true);
  EXPECT_THAT(pieces["rows"].get<std::string>(),
              StartsWith("tree " + core::sha256("0").hex() + " " + key + " "));
  EXPECT_THAT(pieces["rows"].get<std::string>(), testing::EndsWith(" 2-step\n"));
  EXPECT_THAT(pieces["before"].get<std::string>(), StartsWith(server.url() + "/team/pipe/"));
  EXPECT_TRUE(objects.contains("/team/pipe/" + key)) << "the store was given what it lacked";
}

TEST_F(StagedPieces, of_a_large_gather_are_a_list_in_the_bucket_which_goes_with_the_attempt) {
  const auto all = items(2'000);
  const std::string list = "/team/pipe/runs/run/step.1/pieces/all";
  EXPECT_THAT(all.at(1)["list"].get<std::string>(), StartsWith(server.url() + list + "?"));
  EXPECT_LT(document.size(), 10'000u);
  EXPECT_EQ(std::ranges::count(objects.at(list), '\n'), 2'000);
  EXPECT_LT(objects.at(list).size(), 2'000 * 300u);
  run_task(loop, files.forget("run", "step", 1, {}, {}));
  EXPECT_FALSE(objects.contains(list));
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
