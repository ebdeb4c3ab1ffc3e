/// @file
/// Broken pipeline files, profiles and task definitions, and the exact messages about them, in
/// tests/golden/errors/NAME.yaml or .json, NAME.expected.
#include <filesystem>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "settings/fields.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/profile_file.hpp"
#include "support/golden.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

const fs::path golden_folder = fs::path(PIPELINE_SOURCE_DIR) / "tests/golden/errors";

std::vector<std::string> names() { return test::golden_names(golden_folder, {".yaml", ".json"}); }

/// Returns the messages without this checkout's path.
std::string printed(const std::string& name) {
  const std::string folder = golden_folder.string();
  const std::string file =
      name + (fs::exists(golden_folder / (name + ".json")) ? ".json" : ".yaml");
  std::string text;
  try {
    if (name.starts_with("profiles")) {
      parse_profiles(core::read_file(golden_folder / file), golden_folder / file);
    } else {
      load(golden_folder / file);
    }
  } catch (const core::InputError& error) {
    text = error.what();
  }
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;)
    text.replace(at, folder.size(), "FOLDER");
  return text.empty() ? "no error\n" : text + (text.ends_with('\n') ? "" : "\n");
}

class BrokenFile : public testing::TestWithParam<std::string> {};

TEST_P(BrokenFile, tells_its_author_what_is_wrong) {
  test::expect_golden(printed(GetParam()), golden_folder, GetParam());
}

INSTANTIATE_TEST_SUITE_P(golden, BrokenFile, testing::ValuesIn(names()),
                         [](const auto& each) { return each.param; });

TEST(BrokenFiles, each_setting_of_slurm_has_an_error) {
  const auto expected = core::read_file(golden_folder / "slurm.expected");
  const auto has = [&](const std::string& text) { return expected.find(text) != text.npos; };
  settings::fields(
      [&](const auto& field) {
        const auto name = "'" + std::string(field.key) + "'";
        EXPECT_TRUE(has("error: " + name) || has("error: each of " + name)) << name;
      },
      static_cast<const SlurmSettings*>(nullptr));
}

TEST(BrokenFiles, are_at_least_25) { EXPECT_GE(names().size(), 25u); }

}  // namespace
}  // namespace pipeline::spec
