#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrators/containers/service_output.hpp"

namespace pipeline::test {
namespace {

using testing::ElementsAre;

TEST(ServiceOutput, failure_gets_the_last_lines_behind_the_name_of_the_service) {
  Failure failure{FailureKind::exit_code, "its service 'db' ended", {}, {"first"}};
  orchestrators::containers::add_last_lines("db", "starting\nno space left\n", failure);
  EXPECT_THAT(failure.details, ElementsAre("first", "[db] starting", "[db] no space left"));
}

TEST(ServiceOutput, failure_gets_at_most_ten_lines) {
  std::string output;
  for (int line = 1; line <= 12; ++line) output += std::to_string(line) + "\n";
  Failure failure;
  orchestrators::containers::add_last_lines("db", output, failure);
  ASSERT_EQ(failure.details.size(), 10u);
  EXPECT_EQ(failure.details.front(), "[db] 3");
  EXPECT_EQ(failure.details.back(), "[db] 12");
}

TEST(ServiceOutput, last_line_is_the_last_one_with_text) {
  using orchestrators::containers::last_line_of;
  EXPECT_EQ(last_line_of("Traceback:\n  File x\nOSError: no answer\n\n"), "OSError: no answer");
  EXPECT_EQ(last_line_of("  one line"), "one line");
  EXPECT_EQ(last_line_of("\n \n"), "");
}

}  // namespace
}  // namespace pipeline::test
