// Requirements files as pip reads them.
#include "spec/requirements_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/file.hpp"

namespace pipeline::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RequirementsFile : public testing::Test {
 protected:
  std::vector<std::string> read(const std::string& text) {
    const auto file = folder.path() / "requirements.txt";
    core::write_file_atomically(file, text);
    std::set<std::filesystem::path> sources;
    return read_requirements(file, "requirements.txt", {}, diagnostics, sources);
  }
  core::TemporaryFolder folder;
  settings::Diagnostics diagnostics;
};

TEST_F(RequirementsFile, with_line_ends_of_windows_is_read_as_any_other) {
  EXPECT_THAT(read("\xEF\xBB\xBFsix==1.16.0\r\nidna\r\n"), ElementsAre("six==1.16.0", "idna"));
  EXPECT_TRUE(diagnostics.empty());
}

TEST_F(RequirementsFile, in_utf_16_is_a_single_error) {
  EXPECT_THAT(read(std::string("\xFF\xFEs\0i\0x\0", 8)), ElementsAre());
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_THAT(diagnostics[0].message, HasSubstr("is UTF-16"));
}

TEST_F(RequirementsFile, joins_continued_lines) {
  EXPECT_THAT(read("idna==3.7\\\n  --hash=sha256:aa \\\n  --hash=sha256:bb\n"),
              ElementsAre("idna==3.7 --hash=sha256:aa --hash=sha256:bb"));
  EXPECT_TRUE(diagnostics.empty());
}

TEST_F(RequirementsFile, has_the_same_options_in_each_form) {
  const auto whole = ElementsAre("--find-links ./wheels", "--index-url https://index/simple");
  EXPECT_THAT(read("--find-links=./wheels\n--index-url=https://index/simple\n"), whole);
  EXPECT_THAT(read("-f./wheels\n-i https://index/simple\n"), whole);
  EXPECT_TRUE(diagnostics.empty());
}

TEST_F(RequirementsFile, refuses_hashes_of_local_files) {
  EXPECT_THAT(read("./wheels/x-1-py3-none-any.whl --hash=sha256:aa\n"), ElementsAre());
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_THAT(diagnostics[0].notes.at(0), HasSubstr("leave out `--hash`"));
}

}  // namespace
}  // namespace pipeline::spec
