#include "engine/attempt/python_stacks.hpp"

#include <gtest/gtest.h>

namespace pipeline::engine {
namespace {

TEST(PythonStacks, lines_of_py_spy_are_kept_without_empty_ones) {
  const auto lines = read_python_stacks(
      "Process 7: python3 train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 7 (idle): \"MainThread\"\n    wait (threading.py:331)\n");
  const std::vector<std::string> expected{
      "py-spy: Process 7: python3 train.py", "py-spy: Python v3.11.2 (/usr/bin/python3.11)",
      "py-spy: Thread 7 (idle): \"MainThread\"", "py-spy:     wait (threading.py:331)"};
  EXPECT_EQ(lines, expected);
}

TEST(PythonStacks, output_of_a_steps_own_py_spy_can_neither_flood_nor_colour_the_log) {
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "\x1b[31m" + std::string(1000, 'x') + "\n";
  const auto lines = read_python_stacks(flood);
  EXPECT_EQ(lines.size(), 60U);
  EXPECT_TRUE(lines.front().starts_with("py-spy: \\x1b[31mxxx")) << lines.front();
  EXPECT_LT(lines.front().size(), 400U);
}

}  // namespace
}  // namespace pipeline::engine
