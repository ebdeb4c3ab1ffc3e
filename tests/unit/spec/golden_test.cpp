/// @file
/// Broken pipeline files and task definitions, and what their author is told, word for word: tests/golden/errors/NAME.yaml or .json, NAME.expected.
/// PIPE_ACCEPT=1 writes what is printed now as the expected text; read it as a user would before committing it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(PIPELINE_SOURCE_DIR) / "tests/golden/errors";

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".yaml" || entry.path().extension() == ".json") found.push_back(entry.path().stem().string());
  std::sort(found.begin(), found.end());
  return found;
}

/// What the author sees, with this checkout's place left out.
std::string printed(const std::string& name) {
  const std::string folder = kFolder.string();
  const std::string file = name + (fs::exists(kFolder / (name + ".json")) ? ".json" : ".yaml");
  std::string text;
  try {
    load(kFolder / file);
  } catch (const InputError& error) { text = error.what(); }
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) text.replace(at, folder.size(), "FOLDER");
  return text.empty() ? "no error\n" : text + (text.ends_with('\n') ? "" : "\n");
}

class BrokenFile : public testing::TestWithParam<std::string> {};

TEST_P(BrokenFile, tells_its_author_what_is_wrong) {
  const std::string text = printed(GetParam());
  const fs::path expected = kFolder / (GetParam() + ".expected");
  if (std::getenv("PIPE_ACCEPT")) {
    std::ofstream(expected, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(fs::exists(expected)) << "no " << expected << "; PIPE_ACCEPT=1 writes it";
  EXPECT_EQ(text, read_file(expected));
}

INSTANTIATE_TEST_SUITE_P(golden, BrokenFile, testing::ValuesIn(names()), [](const auto& each) { return each.param; });

TEST(BrokenFiles, are_at_least_25) { EXPECT_GE(names().size(), 25u); }

}  // namespace
}  // namespace pipeline::spec
