#include "engine/graph/matrix_items.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "engine/graph/matrix_expansion.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class MatrixItems : public testing::Test {
 protected:
  store::OutputRecord stored(const fs::path& path) {
    const auto artifact = artifacts_.take(path);
    return {"files", "files", artifact.digest, artifact.is_directory, artifact.bytes};
  }
  store::OutputRecord list(const std::string& json) {
    core::write_file_atomically(folder_.path() / "list", json);
    return stored(folder_.path() / "list");
  }
  std::vector<nlohmann::json> values(const store::OutputRecord& output,
                                     std::vector<std::string> path = {}) {
    std::vector<nlohmann::json> found;
    for (const auto& item : items_of({{"split", "files"}, std::move(path)}, output, artifacts_))
      found.push_back(item.value);
    return found;
  }
  std::string error_of(const store::OutputRecord& output, std::vector<std::string> path = {}) {
    try {
      values(output, std::move(path));
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no error";
  }

  core::TemporaryFolder folder_;
  store::ArtifactStore artifacts_{folder_.path() / "artifacts"};
};

TEST_F(MatrixItems, of_a_list_are_its_values_in_order) {
  EXPECT_THAT(values(list(R"(["b", "a", 3, 0.5, true])")), ElementsAre("b", "a", 3, 0.5, true));
  EXPECT_THAT(values(list("[]")), ElementsAre());
  EXPECT_THAT(values(list(R"({"trials": [[1], [2]]})"), {"trials", "1"}), ElementsAre(2));
}

TEST_F(MatrixItems, that_are_large_integers_keep_all_of_their_digits) {
  EXPECT_THAT(values(list("[9007199254740993, 18446744073709551615, -9223372036854775808]")),
              ElementsAre(9007199254740993, 18446744073709551615u,
                          std::numeric_limits<std::int64_t>::min()));
  EXPECT_THAT(values(list(R"([12345678901234567890123, -9223372036854775809, 1e30, "1\"", 5])")),
              ElementsAre("12345678901234567890123", "-9223372036854775809", 1e30, "1\"", 5));
  EXPECT_THAT(values(list(R"([{"seed": 12345678901234567890123}])")),
              ElementsAre(R"({"seed":"12345678901234567890123"})"));
}

TEST_F(MatrixItems, that_are_structures_become_their_json) {
  EXPECT_THAT(values(list(R"([{"b": 1, "a": [2]}, [3]])")),
              ElementsAre(R"({"a":[2],"b":1})", "[3]"));
}

TEST_F(MatrixItems, of_a_small_folder_with_a_flipped_bit_are_refused) {
  core::make_folders(folder_.path() / "parts");
  core::write_file_atomically(folder_.path() / "parts" / "a", "aaaa");
  const auto output = stored(folder_.path() / "parts");
  const auto entry = artifacts_.path(output.digest) / "a";
  const auto time = fs::last_write_time(entry);
  fs::permissions(entry, fs::perms(0644));
  std::ofstream(entry) << "abaa";
  fs::last_write_time(entry, time);
  fs::permissions(entry, fs::perms(0444));
  ASSERT_TRUE(artifacts_.looks_whole(output.digest));
  EXPECT_THAT(error_of(output), HasSubstr("split.files is missing or damaged here"));
  EXPECT_FALSE(artifacts_.has(output.digest))
      << "the store forgets the damaged artifact, so that its step runs again";
}

TEST_F(MatrixItems, of_a_folder_are_its_entries_in_numeric_order) {
  const auto folder = folder_.path() / "parts";
  for (const char* name : {"part-10", "part-2", ".hidden", "part-02", "a", "part-2b"})
    (core::make_folders(folder), core::write_file_atomically(folder / name, name));
  core::make_folders(folder / "sub");
  core::write_file_atomically(folder / "sub" / "x", "y");
  const auto output = stored(folder);
  const auto items = items_of({{"split", "files"}, {}}, output, artifacts_);
  std::vector<std::string> names;
  for (const auto& item : items) {
    names.push_back(item.value);
    EXPECT_TRUE(fs::exists(*item.entry));
  }
  EXPECT_THAT(names, ElementsAre("a", "part-02", "part-2", "part-2b", "part-10", "sub"));
}

TEST_F(MatrixItems, that_are_not_values_of_parameters_are_refused) {
  EXPECT_THAT(error_of(list("{}")), HasSubstr("split.files is not a list, but {}"));
  EXPECT_THAT(error_of(list("[1")), HasSubstr("split.files is not JSON"));
  EXPECT_THAT(error_of(list("[null]")), HasSubstr("item 0 of split.files is null"));
  EXPECT_THAT(error_of(list(R"(["a", "a"])")),
              HasSubstr("item 1 of split.files is \"a\", as item 0"));
  EXPECT_THAT(error_of(list(R"(["a\u0007"])")), HasSubstr("control characters"));
  EXPECT_THAT(error_of(list(R"([")" + std::string(5000, 'x') + R"("])")),
              HasSubstr("has 5000 bytes"));
  EXPECT_THAT(error_of(list(R"({"a": 1})"), {"b"}), HasSubstr("no member 'b'; it has: a"));
  std::string many = "[0";
  for (int i = 1; i <= 100'000; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(error_of(list(many + "]")),
              HasSubstr("has 100001 items, and a matrix makes at most"));
}

TEST_F(MatrixItems, that_are_links_or_hostile_names_are_refused) {
  const auto folder = folder_.path() / "links";
  core::make_folders(folder);
  core::write_file_atomically(folder / "file", "");
  fs::create_symlink("file", folder / "link");
  EXPECT_THAT(error_of(stored(folder)), HasSubstr("'link' in the folder split.files is a link"));
  const auto other = folder_.path() / "names";
  core::make_folders(other);
  std::ofstream(other / "a\x07") << "";
  EXPECT_THAT(error_of(stored(other)), HasSubstr("control characters"));
}

TEST_F(MatrixItems, make_a_hundred_thousand_instances) {
  std::string text = "[0";
  for (int i = 1; i < 100'000; ++i) text += "," + std::to_string(i);
  const auto output = list(text + "]");
  StepSpec step;
  step.name = "work";
  step.matrix = MatrixSpec{"work", {{"n", {}, OutputValue{{"split", "files"}, {}}}}};
  const auto start = std::chrono::steady_clock::now();
  const auto cpu_start = std::clock();
  const MatrixExpansion expansion(
      {&step}, [&](const SourceSpec&) { return &output; }, artifacts_);
  const auto instances = expansion.instances_of(step);
  const auto took = std::chrono::steady_clock::now() - start;
  const auto cpu = (std::clock() - cpu_start) * 1000 / CLOCKS_PER_SEC;
  ASSERT_EQ(instances.size(), 100'000u);
  EXPECT_EQ(instances.back().name, "work.n-99999");
  EXPECT_EQ(instances.back().parameters.at("n"), 99999);
  RecordProperty("milliseconds", static_cast<int>(took / std::chrono::milliseconds(1)));
  std::cout << took / std::chrono::milliseconds(1) << " ms, " << cpu
            << " ms of CPU for 100,000 instances\n";
}

TEST_F(MatrixItems, of_a_step_with_long_texts_are_refused_before_memory_is_gone) {
  std::string numbers;
  for (int i = 0; i < 10'000; ++i) numbers += (i ? "," : "[") + std::to_string(i);
  const auto output = list(numbers + "]");
  StepSpec step{.name = "work"};
  step.matrix = MatrixSpec{"work", {{"n", {}, OutputValue{{"split", "files"}, {}}}}};
  step.parameters["text"] = Json(std::string(200'000, 'x'));
  try {
    const MatrixExpansion expansion(
        {&step}, [&](const SourceSpec&) { return &output; }, artifacts_);
    ADD_FAILURE() << "the texts were accepted";
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("makes 10000 copies of step 'work', of 19"));
  }
}

}  // namespace
}  // namespace pipeline::engine
