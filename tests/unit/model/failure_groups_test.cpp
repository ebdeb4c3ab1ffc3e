#include "model/failure_groups.hpp"

#include <gtest/gtest.h>

namespace pipeline::model {
namespace {

Failure exits(std::vector<std::string> lines) {
  return {FailureKind::exit_code, "ended with exit code 1", {}, std::move(lines)};
}

std::vector<std::string> names(std::vector<StepFailure> failures) {
  std::vector<std::string> found;
  for (const auto& group : group_failures(std::move(failures))) found.push_back(names_of(group));
  return found;
}

TEST(FailureGroups, instances_whose_last_lines_differ_only_in_numbers_are_a_group) {
  EXPECT_EQ(
      names({{"train.lr-0.1", exits({"epoch 3", "ValueError: bad rate 0.1",
                                     "pipe: line 1 ended with exit code 1: train", ""})},
             {"train.lr-0.2", exits({"ValueError: bad rate 0.25"})},
             {"train.lr-0.3", exits({"CUDA error", "pipe: line 1 ended with exit code 1: train"})},
             {"train.lr-0.4", exits({"ValueError: bad rate 1"})}}),
      (std::vector<std::string>{"train.lr-0.1, train.lr-0.2, train.lr-0.4 (3 instances)",
                                "train.lr-0.3"}));
}

TEST(FailureGroups, steps_without_a_matrix_are_equal_only_in_what_they_need) {
  const Failure build{FailureKind::build, "cannot build pipe:env", {}, {"no such package"}};
  EXPECT_EQ(names({{"a", exits({"x"})}, {"b", exits({"x"})}, {"c", build}, {"d", build}}),
            (std::vector<std::string>{"a", "b", "c, d"}));
}

TEST(FailureGroups, many_names_are_counted) {
  std::vector<StepFailure> failures;
  for (int i = 0; i < 40; ++i)
    failures.push_back({"t.i-" + std::to_string(i), exits({"wrong " + std::to_string(i)})});
  EXPECT_EQ(names(failures),
            std::vector<std::string>{"t.i-0, t.i-1, t.i-2 and 37 more steps (40 instances)"});
}

}  // namespace
}  // namespace pipeline::model
