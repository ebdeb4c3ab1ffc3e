#include "model/findings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pipeline::model {
namespace {

std::vector<std::string> messages_of(const Findings& findings) {
  std::vector<std::string> messages;
  for (const auto& each : findings.all()) messages.push_back(each.message);
  return messages;
}

TEST(Findings, of_several_steps_are_reported_once_in_the_order_of_the_first) {
  const StepSpec a{.name = "a"}, b{.name = "b"}, c{.name = "c"};
  const std::vector<const StepSpec*> first{&a}, second{&b, &a};
  Findings findings;
  findings.add(first, {.code = "small", .message = "has little memory"});
  findings.add(second, {.code = "large", .message = "has much code"});
  findings.add(second, {.code = "small", .message = "has little memory"});
  EXPECT_EQ(messages_of(findings), (std::vector<std::string>{"steps 'a', 'b': has little memory",
                                                             "steps 'b', 'a': has much code"}));
}

TEST(Findings, with_different_suggestions_stay_apart) {
  const StepSpec a{.name = "a"}, b{.name = "b"};
  const std::vector<const StepSpec*> first{&a}, second{&b};
  Findings findings;
  findings.add(first, {.code = "small", .message = "has too little", .suggestion = "write 1MiB"});
  findings.add(second, {.code = "small", .message = "has too little", .suggestion = "write 2MiB"});
  EXPECT_EQ(messages_of(findings),
            (std::vector<std::string>{"step 'a': has too little", "step 'b': has too little"}));
}

TEST(Findings, about_each_of_many_instances_are_one) {
  std::vector<StepSpec> steps(10'000);
  for (auto& step : steps) step.name = "a";
  Findings findings;
  for (const auto& step : steps) {
    const auto* one = &step;
    findings.add({&one, 1}, {.code = "small", .message = "has little memory"});
  }
  EXPECT_EQ(messages_of(findings).size(), 1u);
}

}  // namespace
}  // namespace pipeline::model
