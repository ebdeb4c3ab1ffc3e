#include <gtest/gtest.h>

#include "async/sleep.hpp"
#include "core/error.hpp"
#include "orchestrators/gang.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/odd_rank.hpp"
#include "orchestrators/stopped.hpp"
#include "support/attempt_builder.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators {
namespace {

using test::AttemptBuilder;
using test::run_task;

/// Runs a function in place of a whole node.
class NodeRunner : public AttemptRunner {
 public:
  using Node = std::function<async::Task<AttemptResult>(const Attempt&)>;
  explicit NodeRunner(Node node) : node_(std::move(node)) {}

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    co_return co_await node_(attempt);
  }
  async::Task<NodeAddresses> connect_nodes(const Attempt&, unsigned nodes, unsigned) override {
    if (tries >= max_tries) throw core::EnvironmentError("no network is left");
    NodeAddresses made;
    made.nodes.assign(nodes, "10.0.0.1");
    made.port = 29500;
    made.has_agents = true;
    made.gpus = gpus;
    made.tries = tries++;
    co_return made;
  }
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>&) override {
    co_return;
  }
  unsigned tries = 0, max_tries = 100;
  std::size_t gpus = 0;

 private:
  Node node_;
};

std::string end_line(unsigned rank, int code, const char* how,
                     std::chrono::milliseconds ago = std::chrono::milliseconds(0)) {
  const auto time = std::chrono::system_clock::now() - ago;
  return "!" + std::to_string(rank) + " " + std::to_string(code) + " " + how + " " +
         std::to_string(
             std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch())
                 .count()) +
         " 1000 2000\n";
}

AttemptResult exited(int code) {
  AttemptResult result;
  result.exit_code = code;
  if (code != 0)
    result.failure =
        Failure{FailureKind::exit_code, "exited with code " + std::to_string(code), {}, {}};
  return result;
}

async::Task<AttemptResult> until_stopped(const Attempt& attempt) {
  AttemptResult result;
  co_await async::sleep(std::chrono::hours(1), &attempt.io.cancel);
  result.failure = was_stopped();
  co_return result;
}

struct NodeAgents : testing::Test {
  AttemptBuilder builder{test::shell("train")};
  asio::io_context loop;
  std::optional<unsigned> failed_rank;

  NodeAgents() { builder.step.nodes = {.count = 2, .processes = 2}; }

  AttemptResult run(NodeRunner& runner) {
    const auto attempt = builder.attempt();
    Gang gang(runner, attempt, std::chrono::milliseconds(20));
    auto result = run_task(loop, gang.run());
    failed_rank = gang.failed_rank();
    return result;
  }
};

TEST_F(NodeAgents, pass_the_lines_of_their_processes_on_with_their_ranks) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    const auto first = attempt.process->rank;
    EXPECT_EQ(attempt.process->local_ranks, 2u);
    attempt.io.log.write(Stream::out, "!met\n[" + std::to_string(first + 1) + "] second\n");
    attempt.io.log.write(Stream::err, "pipe: a word of the agent\n" + end_line(first, 0, "ended"));
    co_return exited(0);
  });
  EXPECT_FALSE(run(runner).failure);
  EXPECT_EQ(builder.log.out, "[1] second\n[3] second\n");
  EXPECT_EQ(builder.log.err, "[0] pipe: a word of the agent\n[2] pipe: a word of the agent\n");
}

TEST_F(NodeAgents, name_the_rank_that_failed_and_only_the_others_are_stopped) {
  std::map<unsigned, core::StopLevel> stopped;
  NodeRunner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->node == 0) {
      auto result = co_await until_stopped(attempt);
      stopped[0] = attempt.io.cancel.level();
      co_return result;
    }
    attempt.io.log.write(Stream::out, end_line(3, 7, "failed"));
    co_await async::sleep(std::chrono::milliseconds(300), &attempt.io.cancel);
    stopped[1] = attempt.io.cancel.level();
    co_return exited(7);
  });
  const auto result = run(runner);
  EXPECT_EQ(result.failure->message, "rank 3 of 4, on node 1, exited with code 7");
  ASSERT_EQ(result.processes.size(), 4u);
  EXPECT_EQ(result.processes[0].exit_code, std::nullopt) << "its agent has reported nothing";
  const auto& third = result.processes[3];
  EXPECT_TRUE(third.has_failed_first);
  EXPECT_EQ(third.exit_code, 7);
  EXPECT_EQ(third.usage.user, std::chrono::microseconds(1000));
  EXPECT_EQ(third.usage.peak_memory, 2000u * 1024);
  EXPECT_EQ(failed_rank, 3u);
  EXPECT_EQ(stopped[0], core::StopLevel::graceful);
  EXPECT_EQ(stopped[1], core::StopLevel::none) << "the agent ends its node by itself";
}

TEST_F(NodeAgents, order_failures_by_their_times_and_not_by_their_arrival) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    const bool is_first = attempt.process->node == 0;
    if (!is_first) co_await async::sleep(std::chrono::milliseconds(20));
    attempt.io.log.write(Stream::out,
                         is_first ? end_line(1, 1, "failed")
                                  : end_line(2, 5, "failed", std::chrono::milliseconds(500)));
    co_return exited(is_first ? 1 : 5);
  });
  EXPECT_EQ(run(runner).failure->message, "rank 2 of 4, on node 1, exited with code 5");
}

TEST_F(NodeAgents, continue_through_a_restart_of_all_processes) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    attempt.io.log.write(Stream::out, end_line(0, 1, "again") + end_line(1, 143, "ended"));
    co_await async::sleep(std::chrono::milliseconds(200), &attempt.io.cancel);
    EXPECT_EQ(attempt.io.cancel.level(), core::StopLevel::none);
    co_return exited(0);
  });
  EXPECT_FALSE(run(runner).failure);
}

TEST_F(NodeAgents, are_not_believed_about_ranks_of_other_nodes) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    attempt.io.log.write(Stream::out, end_line(99, 1, "failed"));
    co_return exited(0);
  });
  EXPECT_FALSE(run(runner).failure) << "a step can imitate the lines of an agent";
}

TEST_F(NodeAgents, that_succeed_after_a_failure_fail_the_attempt) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->node == 1) co_return co_await until_stopped(attempt);
    attempt.io.log.write(Stream::out, end_line(1, 1, "failed"));
    co_return exited(0);
  });
  EXPECT_EQ(run(runner).failure->message,
            "rank 1 of 4, on node 0, failed, although its agent exited with code 0");
}

TEST_F(NodeAgents, start_a_process_for_each_gpu_of_a_node_elsewhere) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    EXPECT_EQ(attempt.process->ranks, 8u);
    EXPECT_EQ(attempt.process->gpus_of_node, 4u);
    co_return exited(0);
  });
  runner.gpus = 4;
  builder.step.nodes.processes = per_gpu;
  EXPECT_FALSE(run(runner).failure);
}

TEST_F(NodeAgents, begin_anew_once_all_nodes_have_been_given_back) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    const auto& addresses = *attempt.process->addresses;
    if (addresses.tries > 0) co_return exited(0);
    if (attempt.process->node == 0) co_return co_await until_stopped(attempt);
    addresses.gives_back = true;
    auto result = exited(1);
    result.failure->message = "has no node";
    co_return result;
  });
  EXPECT_FALSE(run(runner).failure);
  EXPECT_EQ(runner.tries, 2u);
  EXPECT_NE(builder.log.err.find("[2] [nodes] rank 2 of 4, on node 1, has no node: the step "
                                 "releases all nodes, and tries again in "),
            std::string::npos)
      << builder.log.err;
}

TEST_F(NodeAgents, fail_if_the_nodes_cannot_be_connected_again) {
  NodeRunner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    attempt.process->addresses->gives_back = true;
    co_return exited(1);
  });
  runner.max_tries = 1;
  EXPECT_EQ(run(runner).failure->message, "no network is left");
}

TEST(NodeVariables, have_placeholders_where_an_agent_starts_the_processes) {
  AttemptBuilder builder(test::shell("train"));
  builder.step.nodes = {.count = 2, .processes = 2, .visible = VisibleGpus::own};
  builder.environment["LOCAL_RANK"] = "mine";
  auto attempt = builder.attempt();
  NodeAddresses addresses{{"{node0}", "{node1}"}, 29500};
  addresses.has_agents = true;
  attempt.process = {.rank = 2,
                     .ranks = 4,
                     .node = 1,
                     .nodes = 2,
                     .local_ranks = 2,
                     .gpus_of_node = 4,
                     .addresses = &addresses};
  const auto variables = node_variables(attempt);
  EXPECT_EQ(variables.at("RANK"), "{rank}");
  EXPECT_EQ(variables.at("MASTER_ADDR"), "{node0}");
  EXPECT_EQ(variables.at("NODE_RANK"), "1");
  EXPECT_EQ(variables.at("CUDA_VISIBLE_DEVICES"), "{gpus}");
  EXPECT_EQ(variables.at("PIPE_RENDEZVOUS_ID"), builder.run_id + "-step-1{restart}");
  EXPECT_TRUE(variables.at("TF_CONFIG").ends_with(R"("task":{"index":{rank},"type":"worker"}})"));
  const auto words = agent_words(attempt, "/agent");
  const auto after = [&](const std::string& option) {
    return *(std::ranges::find(words, option) + 1);
  };
  EXPECT_EQ(words[0], "/agent");
  EXPECT_EQ(words[1], "ranks");
  EXPECT_EQ(after("--node"), "1");
  EXPECT_EQ(after("--processes"), "2");
  EXPECT_EQ(after("--addresses"), "-") << "the agent receives the addresses later";
  EXPECT_EQ(after("--port"), "29504");
  EXPECT_EQ(after("--own-gpus"), "2");
  const auto names = "," + after("--fill") + ",";
  EXPECT_NE(names.find(",RANK,"), std::string::npos);
  EXPECT_EQ(names.find(",LOCAL_RANK,"), std::string::npos) << "the step's own value stays";
  addresses.nodes = {"10.0.0.2", "10.0.0.3"};
  const auto known = agent_words(attempt, "/agent");
  EXPECT_EQ(*(std::ranges::find(known, "--addresses") + 1), "10.0.0.2,10.0.0.3");
}

TEST(OddRank, is_the_rank_for_which_the_others_wait) {
  const std::vector<std::string> waiting{"1 python3 a: b.py: 3 threads sleep in futex_wait_queue"},
      reading{"9 python3 a: b.py: 3 threads wait for a device"};
  EXPECT_EQ(odd_rank_text({{0, waiting}, {1, reading}, {2, waiting}}),
            "rank 1 waits for something else than the 2 others, which are alike");
  EXPECT_EQ(odd_rank_text({{0, waiting}, {1, {"7 python3: 1 thread is stopped"}}}),
            "rank 1 is stopped");
  EXPECT_EQ(odd_rank_text({{0, waiting}, {1, waiting}, {2, waiting}}), "");
  EXPECT_EQ(odd_rank_text({{0, waiting}, {1, reading}}), "") << "either rank may be the odd one";
  EXPECT_EQ(odd_rank_text({}), "");
}

TEST(OddRank, is_found_in_the_lines_of_a_node_with_several_ranks) {
  const auto rank = [](int number, const std::string& wait) {
    return "7 python3 train.py (rank " + std::to_string(number) + "): " + wait;
  };
  const std::string agent = "6 pipe-agent ranks: sleeps in poll";
  EXPECT_EQ(odd_rank_text({{0, {agent, rank(0, "runs"), rank(1, "runs")}},
                           {2, {agent, rank(2, "runs"), rank(3, "is stopped")}}},
                          2),
            "rank 3 is stopped");
  EXPECT_EQ(odd_rank_text({{0, {agent, rank(0, "runs"), rank(1, "runs")}},
                           {2, {agent, rank(2, "sleeps"), rank(3, "runs")}}},
                          2),
            "rank 2 waits for something else than the 3 others, which are alike");
  EXPECT_EQ(odd_rank_text({{0, {}}, {2, {rank(2, "sleeps"), rank(3, "sleeps")}}}, 2), "");
  EXPECT_EQ(odd_rank_text({{0, {rank(0, "runs")}}, {1, {rank(4, "runs"), rank(5, "is stopped")}}}),
            "rank 1 is stopped")
      << "ranks of torchrun are not those of the step";
}

TEST(RankEnd, is_parsed_from_the_agents_line) {
  const auto end = rank_end_of("!12 137 failed 1764263453123456 10 20");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->rank, 12u);
  EXPECT_EQ(end->code, 137);
  EXPECT_TRUE(end->has_failed);
  EXPECT_EQ(end->cpu, std::chrono::microseconds(10));
  EXPECT_EQ(end->peak_memory, 20u * 1024);
  for (const auto* line : {"!0 1 failed 1764263453123456 -1 20", "!0 1 failed 1 1 -20",
                           "!0 1 failed 1 1 99999999999999999999", "!0 1 failed 1"}) {
    EXPECT_EQ(rank_end_of(line)->peak_memory, 0u) << line;
    EXPECT_EQ(rank_end_of(line)->cpu, std::chrono::microseconds(0)) << line;
  }
  EXPECT_FALSE(rank_end_of("!12 143 ended 1764263453123456 10 20")->has_failed);
  for (const auto* line : {"", "!", "!met", "!1 2", "1 2 failed 3 4 5", "!1 2 failed -1 4 5",
                           "!1 2 failed 9000000000000000000 4 5"})
    EXPECT_FALSE(rank_end_of(line)) << line;
}

}  // namespace
}  // namespace pipeline::orchestrators
