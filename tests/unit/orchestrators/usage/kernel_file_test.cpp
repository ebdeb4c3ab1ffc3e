#include "orchestrators/usage/kernel_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.hpp"

namespace pipeline::orchestrators::usage {
namespace {

namespace fs = std::filesystem;

TEST(ProcessVariables, are_those_that_the_process_was_started_with) {
  EXPECT_EQ(process_variables("/nowhere"), "");
  const core::TemporaryFolder process;
  std::ofstream(process.path() / "environ") << "A=1" << '\0' << "B=2" << '\0';
  EXPECT_EQ(process_variables(process.path()), std::string("A=1\0B=2\0", 8));
}

TEST(ProcessVariables, are_read_no_further_than_a_program_can_have_them) {
  constexpr std::uintmax_t what_a_process_may_claim = 1ULL << 40;
  const core::TemporaryFolder process;
  std::ofstream(process.path() / "environ") << "A=1";
  fs::resize_file(process.path() / "environ", what_a_process_may_claim);
  const auto variables = process_variables(process.path());
  EXPECT_TRUE(variables.starts_with("A=1"));
  EXPECT_LE(variables.size(), 8U << 20);
}

}  // namespace
}  // namespace pipeline::orchestrators::usage
