// Jobs alone and tasks of arrays, as squeue prints them and scancel takes them.
#include <gtest/gtest.h>

#include "orchestrators/slurm/client.hpp"
#include "orchestrators/slurm/job_queue.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

TEST(JobQueue, is_read_whatever_the_name_of_a_job_is) {
  const auto jobs = parse_queue(
      "1|PENDING|Resources||pipe-a-1\n2_7|RUNNING|None|node[1-2]|a|b|c\nnot a line\n3|X\n");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0], (QueuedJob{"1", "PENDING", "Resources", "", "pipe-a-1"}));
  EXPECT_EQ(jobs[1], (QueuedJob{"2_7", "RUNNING", "None", "node[1-2]", "a|b|c"}));
}

TEST(JobQueue, finds_tasks_that_wait_together) {
  const JobQueue queue(
      parse_queue("7_2|RUNNING|None|node1|a\n7_[0-1,5,8-12:2%4]|PENDING|Priority||a\n"
                  "8|CANCELLED|None||b\n9|RUNNING|None|node2|c\n"));
  const auto state = [&](const char* id) {
    const auto* job = queue.find(id);
    return job ? job->state : std::string("-");
  };
  for (const auto* id : {"7_0", "7_1", "7_5", "7_8", "7_10", "7_12"})
    EXPECT_EQ(state(id), "PENDING") << id;
  for (const auto* id : {"7_3", "7_9", "7_11", "7_13", "77", "77_0"}) EXPECT_EQ(state(id), "-");
  EXPECT_EQ(state("7_2"), "RUNNING");
  EXPECT_EQ(state("9"), "RUNNING");
  EXPECT_EQ(state("8_3"), "CANCELLED") << "an array that never began is listed like a job";
  EXPECT_TRUE(queue.has_only_array_of("7_3"));
  for (const auto* id : {"7_2", "7_5", "8_3", "10_1", "10"})
    EXPECT_FALSE(queue.has_only_array_of(id)) << id;
}

TEST(JobQueue, tasks_of_an_array_are_one_word_for_scancel) {
  EXPECT_EQ(shortened({"5", "7_3", "7_1", "7_2", "7_9", "6", "8_0"}),
            (std::vector<std::string>{"5", "6", "7_[1-3,9]", "8_[0]"}));
  EXPECT_TRUE(shortened({}).empty());
  std::vector<std::string> scattered;
  for (int task = 0; task < 4000; task += 2) scattered.push_back("7_" + std::to_string(task));
  const auto words = shortened(scattered);
  EXPECT_GT(words.size(), 1u);
  for (const auto& word : words) EXPECT_LT(word.size(), 5000u);
}

TEST(JobQueue, limits_of_arrays_are_read_from_the_configuration) {
  const auto limits = parse_limits(
      "Configuration data as of x\nMaxArraySize            = 1001\nMaxJobCount             = "
      "10000\n"
      "MaxJobId = 67043328\n");
  EXPECT_EQ(limits.max_array_size, 1001u);
  EXPECT_EQ(limits.max_jobs, 10000u);
  EXPECT_EQ(parse_limits("").max_array_size, 0u);
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
