#include "engine/run/declared.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipeline::engine {
namespace {

TEST(Declared, has_a_step_that_a_condition_reads_among_the_needs) {
  StepSpec evaluate, publish;
  evaluate.name = "evaluate";
  publish.name = "publish";
  publish.when.emplace().outputs["evaluate.metrics.accuracy"] = {{"evaluate", "metrics"},
                                                                 {"accuracy"}};
  const auto entries = nlohmann::json::parse(declared({&evaluate, &publish}));
  EXPECT_EQ(entries["publish"]["needs"], nlohmann::json::array({"evaluate"}));
  EXPECT_EQ(entries["evaluate"]["needs"], nlohmann::json::array());
}

}  // namespace
}  // namespace pipeline::engine
