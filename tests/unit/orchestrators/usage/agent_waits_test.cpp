#include "orchestrators/usage/agent_waits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::orchestrators::usage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PodWaits, have_a_line_for_each_process) {
  EXPECT_THAT(
      read_agent_waits("P7 python3 train.py --lr 0.1\tS63 futex_wait_queue\tR1 0\tP9 sleep 5\tD1 "),
      ElementsAre(
          "7 python3 train.py --lr 0.1: 1 thread runs, 63 threads sleep in futex_wait_queue",
          "9 sleep 5: waits for a device"));
}

TEST(PodWaits, that_a_step_has_written_are_no_more_than_text) {
  EXPECT_THAT(read_agent_waits(""), IsEmpty());
  EXPECT_THAT(read_agent_waits("S1 x\tP\tPnothing\tS99999999999999999999999 x\tS0 x\tSx\t\t"),
              IsEmpty());
  EXPECT_THAT(read_agent_waits("P1 a\x1b[2J\tS1 b\x07"), ElementsAre("1 a [2J: sleeps in b "));
}

}  // namespace
}  // namespace pipeline::orchestrators::usage
