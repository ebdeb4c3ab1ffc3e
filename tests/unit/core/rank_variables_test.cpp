#include "core/rank_variables.hpp"

#include <string>

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

using namespace std::string_literals;

TEST(RankVariables, a_number_is_found_by_its_whole_name) {
  const auto variables = "GROUP_RANK=1\0RANK=34\0RANKS=5\0EMPTY=\0WORD=x1\0LAST=6"s;
  EXPECT_EQ(number_of_variable(variables, "RANK"), 34);
  EXPECT_EQ(number_of_variable(variables, "LAST"), 6);
  EXPECT_EQ(number_of_variable(variables, "EMPTY"), -1);
  EXPECT_EQ(number_of_variable(variables, "WORD"), -1);
  EXPECT_EQ(number_of_variable(variables, "GROUP"), -1);
  EXPECT_EQ(number_of_variable("", "RANK"), -1);
}

TEST(RankVariables, a_node_with_one_process_shows_no_rank) {
  EXPECT_EQ(rank_in_variables("LOCAL_WORLD_SIZE=2\0RANK=3\0"s), 3);
  EXPECT_EQ(rank_in_variables("LOCAL_WORLD_SIZE=1\0RANK=3\0"s), -1);
  EXPECT_EQ(rank_in_variables("RANK=3\0"s), -1);
}

}  // namespace
}  // namespace pipeline::core
