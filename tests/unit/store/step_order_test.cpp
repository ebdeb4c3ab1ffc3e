#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/run_store.hpp"
#include "unit/store/run_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(RunStoreTest, steps_that_the_run_has_made_stand_where_the_file_has_them) {
  RunStore store(state);
  store.runs().add(run_record("r"));
  const auto add = [&](const std::string& name) {
    store.runs().put_step({.run = "r", .name = name});
  };
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& step : store.runs().steps("r")) found.push_back(step.name);
    return found;
  };
  for (const auto* name : {"start", "fit", "report"}) add(name);
  store.runs().expand_step("r", "fit", 4);
  for (const auto* name : {"fit.round-0", "fit.round-1", "later"}) add(name);
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(), (Names{"start", "report", "fit.round-0", "fit.round-1", "later"}));
  store.key_values().put(declared_kind, "r",
                         R"({"fit":{"place":1},"report":{"place":2},"start":{"place":0}})");
  EXPECT_EQ(names(), (Names{"start", "fit.round-0", "fit.round-1", "report", "later"}));
  for (const auto* damaged :
       {R"({"fit":{"place":"x"},"place":{}})", R"(["place":])", R"({"fit":[1],"place":1})"}) {
    store.key_values().put(declared_kind, "r", damaged);
    EXPECT_EQ(names().size(), 5u) << damaged;
  }
}

}  // namespace
}  // namespace pipeline::store
