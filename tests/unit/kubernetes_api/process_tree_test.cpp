#include "agent/process_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::kubernetes_api {
namespace {

using agent::descendants_of;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProcessTree, has_children_and_their_children_whatever_their_numbers) {
  EXPECT_THAT(descendants_of(50, {{1, 0}, {50, 1}, {7, 60}, {60, 50}, {61, 60}, {62, 1}, {9, 50}}),
              ElementsAre(7, 9, 60, 61));
  EXPECT_THAT(descendants_of(50, {{1, 0}, {50, 1}, {62, 1}}), IsEmpty());
}

TEST(ProcessTree, ends_although_numbers_were_used_again_while_the_processes_were_read) {
  EXPECT_THAT(descendants_of(50, {{50, 60}, {60, 50}, {70, 71}, {71, 70}}), ElementsAre(60));
}

TEST(ProcessTree, has_a_step_on_a_machine_with_thousands_of_threads_of_the_kernel) {
  std::vector<agent::ProcessParent> all{{1, 0}, {2, 0}};
  constexpr pid_t kernel_threads = 20'000;
  for (pid_t pid = 3; pid < kernel_threads; ++pid) all.push_back({pid, 2});
  for (pid_t pid = kernel_threads; pid < kernel_threads + 100; ++pid) all.push_back({pid, pid - 1});
  all[kernel_threads - 1].parent = 1;
  EXPECT_EQ(descendants_of(kernel_threads, all).size(), 99u);
}

}  // namespace
}  // namespace pipeline::kubernetes_api
