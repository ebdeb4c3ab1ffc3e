#include "engine/run/declarations.hpp"

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
      declarations_of({&evaluate, &publish}, {"publish.lag", "gone.x", "evaluate.f1.macro"}));
  EXPECT_EQ(entries["publish"]["needs"], nlohmann::json::array({"evaluate"}));
  EXPECT_EQ(entries["evaluate"]["needs"], nlohmann::json::array());
  EXPECT_EQ(entries["publish"]["headline"], nlohmann::json({{"lag", 0}}));
  EXPECT_EQ(entries["evaluate"]["headline"], nlohmann::json({{"f1.macro", 2}}));
  EXPECT_FALSE(entries.contains("gone"));
}

TEST(Declared, has_the_number_of_ranks_of_a_step_with_nodes_if_it_is_known) {
  StepSpec plain, train, all;
  plain.name = "plain";
  train.name = "train";
  train.nodes = {.count = 4, .processes = 4};
  all.name = "all";
  all.nodes = {.count = 2, .processes = per_gpu};
  const auto entries = nlohmann::json::parse(declarations_of({&plain, &train, &all}, {}));
  EXPECT_FALSE(entries["plain"].contains("ranks"));
  EXPECT_EQ(entries["train"]["ranks"], 16);
  EXPECT_FALSE(entries["all"].contains("ranks"));
}

TEST(Declared, has_places_where_the_run_makes_steps_and_one_for_steps_with_the_same_rounds) {
  StepSpec start, propose, between, choose;
  start.name = "start";
  propose.name = "propose";
  between.name = "between";
  choose.name = "choose";
  EXPECT_FALSE(
      nlohmann::json::parse(declarations_of({&start, &between}, {}))["start"].contains("place"));
  propose.repeat.emplace().of = "propose";
  choose.repeat.emplace().of = "propose";
  const auto entries =
      nlohmann::json::parse(declarations_of({&start, &propose, &between, &choose}, {}));
  EXPECT_EQ(entries["start"]["place"], 0);
  EXPECT_EQ(entries["propose"]["place"], 1);
  EXPECT_EQ(entries["between"]["place"], 2);
  EXPECT_EQ(entries["choose"]["place"], 1);
}

}  // namespace
}  // namespace pipeline::engine
