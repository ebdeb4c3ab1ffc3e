#include "driver/run_model.hpp"

#include <gtest/gtest.h>

namespace pipeline::driver {
namespace {

event::StepFinished reused(const std::string& step) {
  return {step, StepStatus::cached, 0, {}, {}, "20261120-000000-000000"};
}

TEST(RunModel, reused_instances_of_a_group_are_counted_without_a_view_each) {
  RunModel model;
  event::RunStarted start{"r", "digits", "local", 31};
  start.instances = {{"train", 30}};
  model.apply(start, {});
  for (int i = 0; i < 30; ++i) model.apply(reused("train.i-" + std::to_string(i)), {});
  model.apply(reused("train.i-7"), {});
  model.apply(reused("report"), {});
  EXPECT_EQ(model.done(), 31u);
  EXPECT_EQ(model.groups.at(0).text(), "30/30, 30 reused");
  EXPECT_EQ(model.steps.size(), 2u) << "the first of the group, and the step without a group";

  model.apply(event::StepStarted{"train.i-7", 1, "pipe"}, {});  // It is made again.
  EXPECT_EQ(model.groups.at(0).text(), "29/30, 1 running, 29 reused");
  EXPECT_EQ(model.done(), 30u);
  model.apply(event::StepFinished{"train.i-7", StepStatus::succeeded, 1, {}, {}, {}}, {});
  EXPECT_EQ(model.groups.at(0).text(), "30/30, 29 reused");
  EXPECT_EQ(model.done(), 31u);
  EXPECT_EQ(model.count(StepStatus::pending), 0u);
}

}  // namespace
}  // namespace pipeline::driver
