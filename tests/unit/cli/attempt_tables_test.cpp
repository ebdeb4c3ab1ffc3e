#include "cli/attempt_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace pipeline::cli {
namespace {

std::vector<store::TaskRecord> ranks(unsigned count) {
  std::vector<store::TaskRecord> tasks(count);
  for (unsigned rank = 0; rank < count; ++rank) tasks[rank].rank = rank;
  return tasks;
}

TEST(RanksText, has_a_row_for_each_process_of_an_attempt_with_nodes) {
  EXPECT_EQ(ranks_text(ranks(1), "show", {}), "");
  auto tasks = ranks(2);
  tasks[1].node_rank = 1;
  tasks[1].exit_code = 3;
  tasks[1].node = "gpu-7";
  tasks[1].gpus = {2, 3};
  tasks[1].running = std::chrono::milliseconds(1500);
  tasks[1].has_failed_first = true;
  EXPECT_EQ(ranks_text(tasks, "show", {}),
            "\n"
            "RANK  NODE  TIME  EXIT CODE  CPU  MEMORY  GPU   MACHINE\n"
            "0     0\n"
            "1     1     1.5s  3                       2, 3  gpu-7    failed first\n");
}

TEST(RanksText, marks_the_slowest_of_a_success) {
  auto tasks = ranks(3);
  for (auto& task : tasks) task.running = std::chrono::milliseconds(1000);
  EXPECT_EQ(ranks_text(tasks, "show", {}).find("slowest"), std::string::npos);
  tasks[1].running = std::chrono::milliseconds(1200);
  EXPECT_NE(ranks_text(tasks, "show", {}).find("1     0     1.2s"), std::string::npos);
  EXPECT_TRUE(ranks_text(tasks, "show", {}).find("slowest\n2 ") != std::string::npos)
      << ranks_text(tasks, "show", {});
  tasks[0].has_failed_first = true;
  EXPECT_EQ(ranks_text(tasks, "show", {}).find("slowest"), std::string::npos);
}

TEST(RanksText, of_very_many_ranks_begins_with_those_that_failed) {
  auto tasks = ranks(1024);
  tasks[900].exit_code = 143;
  tasks[901].exit_code = 3;
  tasks[901].has_failed_first = true;
  const auto text = ranks_text(tasks, "pipe show", {});
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 1 + 64 + 1);
  EXPECT_LT(text.find("\n901 "), text.find("\n900 "));
  EXPECT_LT(text.find("\n900 "), text.find("\n0 "));
  EXPECT_TRUE(text.ends_with("and 960 more ranks: pipe show\n")) << text;
}

}  // namespace
}  // namespace pipeline::cli
