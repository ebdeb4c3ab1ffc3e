#include "engine/attempt/nccl_state.hpp"

#include <gtest/gtest.h>

namespace pipeline::engine {
namespace {

/// As `ncclras` of NCCL 2.29 prints it.
constexpr std::string_view one_is_behind = R"(NCCL version 2.29.2 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 6650
  Rank 3 has launched up to operation 6649 -- GPU 3 managed by process 487 on node 10.0.0.2

)";

TEST(NcclState, the_rank_that_is_behind_comes_first) {
  const auto lines = read_nccl_state(one_is_behind);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0],
            "NCCL: rank 3 has launched AllReduce only up to operation 6649, 7 ranks up to 6650");
  EXPECT_EQ(lines[1], "ncclras: #0-0 (27a079b828ff1a75) MISMATCH");
  EXPECT_EQ(
      lines[4],
      "ncclras:   Rank 3 has launched up to operation 6649 -- GPU 3 managed by process 487 on "
      "node 10.0.0.2");
}

TEST(NcclState, ranks_behind_and_ranks_that_have_not_begun_are_named) {
  EXPECT_EQ(read_nccl_state("Warnings\n========\n"
                            "  Communicator ranks have different Broadcast operation counts\n"
                            "  6 ranks have launched up to operation 2\n"
                            "  2 ranks have not launched any operations\n")
                .front(),
            "NCCL: 2 ranks have not launched any Broadcast, 6 ranks up to 2");
  EXPECT_EQ(read_nccl_state("Warnings\n========\n"
                            "  Communicator ranks have different AllGather operation counts\n"
                            "  3 ranks have launched up to operation 1\n"
                            "  Rank 2 has not launched any operations -- GPU 0 managed by ...\n")
                .front(),
            "NCCL: rank 2 has not launched any AllGather, 3 ranks up to 1");
}

TEST(NcclState, processes_that_do_not_answer_are_named) {
  const auto lines = read_nccl_state(
      "Errors\n======\n\nINCOMPLETE\n"
      "  Missing communicator data from 1 job process\n"
      "  Process 3487 on node 10.0.0.2 managing GPU 5\n\n"
      "Warnings\n========\n\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "ncclras: INCOMPLETE");
}

TEST(NcclState, is_empty_for_a_healthy_job_and_for_another_text) {
  EXPECT_TRUE(
      read_nccl_state("Job summary\n===\n\nErrors\n======\n\nWarnings\n========\n\n").empty());
  EXPECT_TRUE(read_nccl_state("Usage: ncclras [OPTION]...\n").empty());
  EXPECT_TRUE(read_nccl_state("").empty());
}

TEST(NcclState, is_bounded_whatever_a_step_prints_in_its_place) {
  std::string text = "Warnings\n";
  for (int i = 0; i < 1000; ++i) text += std::string(1000, 'x') + "\x1b[31m\n";
  const auto lines = read_nccl_state(text);
  EXPECT_EQ(lines.size(), 40u);
  for (const auto& line : lines) EXPECT_LE(line.size(), 310u);
  EXPECT_EQ(read_nccl_state("Errors\n\x1b[31mred\n").front(), "ncclras: \\x1b[31mred");
}

}  // namespace
}  // namespace pipeline::engine
