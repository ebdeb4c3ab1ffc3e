#include "unit/store/run_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(RunStoreTest, steps_that_took_an_artifact_are_in_the_order_of_their_run) {
  RunStore store(state);
  const auto artifact = core::sha256("data");
  store.runs().add(run_record("r"));
  for (const auto* name : {"a", "b", "c"}) store.runs().put_step(step_record("r", name));
  for (const auto* name : {"c", "a"}) {  // The order in which they ended.
    const CacheEntry entry{std::string("k-") + name, "r", name, {}};
    store.cache().add(entry, "digits", {{"input data", artifact.hex() + " data.csv"}});
  }
  const auto users = store.lineage().consumers(artifact);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].name, "a");
  EXPECT_EQ(users[1].name, "c");
}

TEST_F(RunStoreTest, a_steps_parts_are_read_alone_or_with_all_of_its_run) {
  RunStore store(state);
  store.runs().add(run_record("r"));
  auto again = run_record("again");
  again.same_as = "r";
  store.runs().add(again);
  for (const auto* name : {"a", "b", "c"}) store.runs().put_step(step_record("r", name));
  EXPECT_EQ(store.runs().steps("r").size(), 3u);
  for (const auto* run : {"r", "again"}) {
    const auto found = store.runs().steps(run, "b");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].name, "b");
  }
  EXPECT_TRUE(store.runs().steps("r", "d").empty());
}

}  // namespace
}  // namespace pipeline::store
