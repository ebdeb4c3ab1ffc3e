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
  const auto entries = nlohmann::json::parse(
      declared({&evaluate, &publish}, {"publish.lag", "gone.x", "evaluate.f1.macro"}));
  EXPECT_EQ(entries["publish"]["needs"], nlohmann::json::array({"evaluate"}));
  EXPECT_EQ(entries["evaluate"]["needs"], nlohmann::json::array());
  EXPECT_EQ(entries["publish"]["headline"], nlohmann::json({{"lag", 0}}));
  EXPECT_EQ(entries["evaluate"]["headline"], nlohmann::json({{"f1.macro", 2}}));
  EXPECT_FALSE(entries.contains("gone"));
}

}  // namespace
}  // namespace pipeline::engine
