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
    fs::create_directories(path / "0-step");
    core::write_file_atomically(path / "0-step/f", "in a folder");
    core::write_file_atomically(path / "index.json", "[]");
    AttemptInput input{.name = "all", .file_name = "all", .path = path};
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = std::to_string(i), file = number + "-step";
      if (i > 0) core::write_file_atomically(path / file, number);
      input.pieces.push_back(
          {.file = file, .digest = core::sha256(number), .is_directory = i == 0});
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
  EXPECT_TRUE(fs::is_empty(attempt.attempt().scratch)) << "the list was made there";
  run_task(loop, files.forget("run", "step", 1, {}, {}));
  EXPECT_FALSE(objects.contains(list));
}

TEST_F(StagedPieces, have_an_index_which_is_a_file_in_the_bucket_if_it_is_large) {
  const std::string stored = "/team/pipe/runs/run/step.1/index/all";
  attempt.inputs = {gathered(1)};
  const auto text = std::string(100'001, ' ');
  core::write_file_atomically(attempt.inputs[0].path / "index.json", text);
  const auto made = attempt.attempt();
  const auto all = json::parse(run_task(loop, files.stage_in(made)).fetch).at("items");
  const auto& index = all.at(2);
  EXPECT_EQ(index["to"], "/pipe/inputs/all/index.json");
  EXPECT_EQ(index["kind"], "file");
  EXPECT_EQ(index["digest"], core::sha256(text).hex());
  EXPECT_THAT(index["url"].get<std::string>(), StartsWith(server.url() + stored + "?"));
  EXPECT_EQ(objects.at(stored), text);
  run_task(loop, files.forget("run", "step", 1, {}, {}));
  EXPECT_FALSE(objects.contains(stored));
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
