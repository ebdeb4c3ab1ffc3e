#include "engine/graph/gather.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Eleven instances with an output each, of which the fourth has not made its own.
class Gathered : public testing::Test {
 protected:
  Gathered() {
    for (int i = 0; i < 11; ++i) {
      const auto name = "train.c-" + std::to_string(i);
      steps.push_back(
          {.name = name, .instance = InstanceSpec{"train", {"c"}}, .parameters = {{"c", Json(i)}}});
      if (i == 0) {  // As of a function that does not take the axis.
        steps[0].instance->other_values["c"] = steps[0].parameters.at("c");
        steps[0].parameters.clear();
      }
      outputs.push_back({"model", "model.tar.gz", core::sha256(std::to_string(i))});
      input.sources.push_back({name, "model"});
    }
  }

  MadeOutput find(const SourceSpec& source) const {
    const auto i = std::stoul(source.step.substr(source.step.find('-') + 1));
    return {&steps[i], i == 3 ? nullptr : &outputs[i]};
  }

  std::vector<StepSpec> steps;
  std::vector<store::OutputRecord> outputs;
  InputSpec input{.name = "models", .gathered = true};
  const OutputsOf find_output = [this](const SourceSpec& source) { return find(source); };
};

TEST_F(Gathered, keys_stay_what_they_were) {
  EXPECT_EQ(content_of(input, find_output),
            "debc98d475ddea7c3d775635a57a254ddfc3acfb6f44dc1973a2f1900d62c7fa of 11");
}

TEST_F(Gathered, files_and_index_have_the_names_that_the_key_is_over) {
  const core::TemporaryFolder folder;
  store::ArtifactStore artifacts(folder.path() / "artifacts");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    core::write_file_atomically(folder.path() / "made", std::to_string(i));
    artifacts.take(folder.path() / "made");
  }
  const GatheredFolder gathered(input, find_output);
  gathered.make(artifacts, folder.path() / "all");
  EXPECT_EQ(core::read_file(folder.path() / "all" / "index.json"), R"([
{"file":"00-train.c-0.tar.gz","parameters":{"c":0},"step":"train.c-0"},
{"file":"01-train.c-1.tar.gz","parameters":{"c":1},"step":"train.c-1"},
{"file":"02-train.c-2.tar.gz","parameters":{"c":2},"step":"train.c-2"},
{"file":null,"parameters":{"c":3},"step":"train.c-3"},
{"file":"04-train.c-4.tar.gz","parameters":{"c":4},"step":"train.c-4"},
{"file":"05-train.c-5.tar.gz","parameters":{"c":5},"step":"train.c-5"},
{"file":"06-train.c-6.tar.gz","parameters":{"c":6},"step":"train.c-6"},
{"file":"07-train.c-7.tar.gz","parameters":{"c":7},"step":"train.c-7"},
{"file":"08-train.c-8.tar.gz","parameters":{"c":8},"step":"train.c-8"},
{"file":"09-train.c-9.tar.gz","parameters":{"c":9},"step":"train.c-9"},
{"file":"10-train.c-10.tar.gz","parameters":{"c":10},"step":"train.c-10"}
]
)");
  EXPECT_EQ(core::entries_of(folder.path() / "all").size(), 11u) << "ten files and the index";
  EXPECT_EQ(core::read_file(folder.path() / "all" / "04-train.c-4.tar.gz"), "4");
  const auto pieces = gathered.pieces(artifacts);
  ASSERT_EQ(pieces.size(), 10u);
  EXPECT_EQ(pieces[3].file, "04-train.c-4.tar.gz");
  EXPECT_EQ(pieces[3].digest, outputs[4].digest);
  const auto made = gathered.artifacts();
  ASSERT_EQ(made.size(), 10u);
  EXPECT_EQ(made[3].step, "train.c-4");
}

}  // namespace
}  // namespace pipeline::engine
