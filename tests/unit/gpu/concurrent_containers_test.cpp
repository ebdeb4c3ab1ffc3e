#include "gpu/concurrent_containers.hpp"

#include <gmock/gmock.h>

namespace pipeline::gpu {
namespace {

/// Returns the largest number of GPUs at a time and the containers that hold them, as `3: 'a' and
/// 'b'`.
std::string group(const std::vector<TaskContainer>& task) {
  const auto largest = most_gpus_at_once(task);
  return std::to_string(largest.gpus) + ": " + names_of(task, largest);
}

TEST(GpusAtOnce, all_containers_that_may_run_at_the_same_time_count) {
  EXPECT_EQ(group({{"a", 1, {}}, {"b", 2, {}}, {"none", 0, {}}, {"c", 4, {}}}),
            "7: 'a', 'b' and 'c'");
}

TEST(GpusAtOnce, a_container_that_waits_for_anothers_end_does_not_run_beside_it) {
  EXPECT_EQ(group({{"a", 2, {}}, {"b", 3, {"a"}}}), "3: 'b'");
  EXPECT_EQ(group({{"a", 2, {}}, {"between", 0, {"a"}}, {"b", 3, {"between"}}}), "3: 'b'")
      << "a container may wait through others";
  EXPECT_EQ(group({{"a", 2, {}}, {"b", 2, {}}, {"after", 3, {"a", "b"}}}), "4: 'a' and 'b'");
}

TEST(GpusAtOnce, are_none_where_no_container_wants_any) {
  EXPECT_EQ(group({}), "0: ");
  EXPECT_EQ(group({{"a", 0, {}}}), "0: ");
}

TEST(GpusAtOnce, more_than_the_machine_has_are_refused_at_the_last_of_them) {
  const std::vector<TaskContainer> task{{"a", 2, {}}, {"between", 0, {}}, {"b", 1, {}}};
  const std::vector<Unit> two{{.uuid = "GPU-0"}, {.uuid = "GPU-1"}};
  const auto lack = shortage_of(task, two, "this machine");
  ASSERT_TRUE(lack);
  EXPECT_EQ(lack->container, 2U);
  EXPECT_EQ(lack->shortage.message,
            "the containers 'a' and 'b' run at the same time and ask for 3 GPUs together, and this "
            "machine has 2");
  EXPECT_FALSE(shortage_of({{"a", 2, {}}, {"b", 1, {"a"}}}, two, "this machine"));
  EXPECT_FALSE(shortage_of({{"a", 3, {}}}, two, "this machine"))
      << "the error of one step is another";
}

TEST(GpusAtOnce, cycles_and_unknown_names_are_passed_over) {
  EXPECT_EQ(group({{"a", 1, {"b"}}, {"b", 1, {"a", "nobody"}}}), "1: 'a'");
}

}  // namespace
}  // namespace pipeline::gpu
