#include "cli/failure_text.hpp"

#include <gtest/gtest.h>

namespace pipeline::cli {
namespace {

TEST(CommandsAboutARun, have_the_programs_own_name_and_the_state_folder) {
  const RunCommands commands{"./digits", "01k7", " --state /data/runs"};
  EXPECT_EQ(commands.line("report"), "./digits report 01k7 --state /data/runs");
  EXPECT_EQ(commands.line("show", "train --output json"),
            "./digits show 01k7 train --output json --state /data/runs");
}

TEST(CommandsAboutARun, are_below_the_last_lines_of_a_failed_step) {
  const auto text =
      render_failures({{"train", {FailureKind::exit_code, "exit code 1", {}, {"no such file"}}}},
                      {"./digits", "01k7", " --state /data/runs"}, Paint{});
  EXPECT_TRUE(text.ends_with("  its whole output: ./digits logs 01k7 train --state /data/runs\n"))
      << text;
}

}  // namespace
}  // namespace pipeline::cli
