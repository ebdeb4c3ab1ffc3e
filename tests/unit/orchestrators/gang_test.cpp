#include "orchestrators/gang.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "async/sleep.hpp"
#include "core/error.hpp"
#include "orchestrators/layout.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/stopped.hpp"
#include "support/attempt_builder.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;
using test::AttemptBuilder;
using test::run_task;

/// Runs a function in place of a process; each process is stopped by its source.
class Runner : public AttemptRunner {
 public:
  using Process = std::function<async::Task<AttemptResult>(const Attempt&)>;
  explicit Runner(Process process) : process_(std::move(process)) {}

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    ++started;
    co_return co_await process_(attempt);
  }
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>&) override {
    co_return;
  }
  async::Task<> disconnect_nodes(const Attempt&) override {
    ++disconnected;
    co_return;
  }
  int started = 0, disconnected = 0;

 private:
  Process process_;
};

/// Ends at a stop only.
async::Task<AttemptResult> until_stopped(const Attempt& attempt) {
  AttemptResult result;
  co_await async::sleep(std::chrono::hours(1), &attempt.io.cancel);
  result.failure = was_stopped();
  co_return result;
}

AttemptResult failed(int code) {
  AttemptResult result;
  result.exit_code = code;
  result.failure =
      Failure{FailureKind::exit_code, "exited with code " + std::to_string(code), {}, {}};
  return result;
}

struct Nodes : testing::Test {
  AttemptBuilder builder{test::shell("train")};
  asio::io_context loop;
  std::optional<unsigned> failed_rank;

  Nodes() { builder.step.nodes = {.count = 2, .processes = 2}; }

  AttemptResult run(Runner& runner, std::vector<AssignedGpu> gpus = {}) {
    auto attempt = builder.attempt();
    attempt.gpus = std::move(gpus);
    return run(runner, attempt);
  }
  AttemptResult run(Runner& runner, const Attempt& attempt) {
    Gang gang(runner, attempt);
    auto result = run_task(loop, gang.run());
    failed_rank = gang.failed_rank();
    return result;
  }
};

TEST_F(Nodes, end_when_another_fails_and_the_first_failure_is_the_attempts) {
  std::map<unsigned, core::StopLevel> stopped;
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    const auto rank = attempt.process->rank;
    // The last line of rank 3 has no end.
    attempt.io.log.write(Stream::err, "rank " + std::to_string(rank) + (rank < 3 ? "\n" : ""));
    if (rank == 2) co_return failed(3);
    auto result = co_await until_stopped(attempt);
    stopped[rank] = attempt.io.cancel.level();
    co_return result;
  });
  const auto result = run(runner);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::exit_code);
  EXPECT_EQ(result.failure->message, "rank 2 of 4, on node 1, exited with code 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(failed_rank, 2u);
  ASSERT_EQ(result.processes.size(), 4u);
  for (const auto& process : result.processes) {
    EXPECT_EQ(process.node, process.rank / 2);
    EXPECT_EQ(process.has_failed_first, process.rank == 2);
  }
  EXPECT_EQ(result.processes[2].exit_code, 3);
  EXPECT_EQ(stopped, (std::map<unsigned, core::StopLevel>{{0, core::StopLevel::graceful},
                                                          {1, core::StopLevel::graceful},
                                                          {3, core::StopLevel::graceful}}));
  EXPECT_EQ(builder.log.err, "[0] rank 0\n[1] rank 1\n[2] rank 2\n[3] rank 3\n");
  EXPECT_EQ(runner.disconnected, 1);
}

TEST_F(Nodes, name_the_process_that_ended_first_and_not_the_first_that_was_noticed) {
  const auto now = std::chrono::steady_clock::now();
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    const auto rank = attempt.process->rank;
    if (rank > 1) co_return co_await until_stopped(attempt);
    auto result = failed(rank == 0 ? 1 : 137);
    result.ended = now - std::chrono::milliseconds(rank);
    if (rank == 1) co_await async::sleep(std::chrono::milliseconds(20));
    co_return result;
  });
  EXPECT_EQ(run(runner).failure->message, "rank 1 of 4, on node 0, exited with code 137");
  EXPECT_EQ(failed_rank, 1u);
}

TEST_F(Nodes, that_are_stopped_from_outside_are_cancelled_without_a_failed_rank) {
  auto attempt = builder.attempt();
  int begun = 0;
  attempt.io.on_began = [&](std::chrono::milliseconds) {
    ++begun;
    builder.cancel.stop(core::StopLevel::immediate);
  };
  Runner runner([&](const Attempt& process) {
    process.io.on_began({});
    return until_stopped(process);
  });
  const auto result = run(runner, attempt);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_EQ(result.failure->message, "was stopped");
  EXPECT_EQ(failed_rank, std::nullopt);
  EXPECT_EQ(begun, 1) << "the start is reported once, after the last of four processes has begun";
}

TEST_F(Nodes, pass_an_exception_on_once_all_have_ended) {
  int ended = 0;
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->rank == 3) throw core::EnvironmentError("the engine is lost");
    auto result = co_await until_stopped(attempt);
    ++ended;
    co_return result;
  });
  EXPECT_THROW(run(runner), core::EnvironmentError);
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(runner.disconnected, 1);
}

TEST_F(Nodes, with_done_first_end_when_rank_0_has_succeeded) {
  builder.step.nodes.done = NodesDone::first;
  Runner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->rank > 0) co_return co_await until_stopped(attempt);
    AttemptResult result;
    result.exit_code = 0;
    co_return result;
  });
  const auto result = run(runner);
  EXPECT_FALSE(result.failure);
  EXPECT_EQ(result.exit_code, 0);
}

TEST_F(Nodes, restart_as_often_as_they_may_under_another_id) {
  std::set<std::string> ids;
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    const auto id = node_variables(attempt).at("PIPE_RENDEZVOUS_ID");
    const bool is_new = ids.insert(id).second;
    if (is_new && ids.size() <= 2) co_return failed(3);
    if (id != *ids.rbegin() || ids.size() < 3) co_return co_await until_stopped(attempt);
    co_return AttemptResult{};
  });
  builder.step.nodes.restarts = 2;
  EXPECT_FALSE(run(runner).failure);
  EXPECT_EQ(runner.started, 12);
  EXPECT_EQ(ids, (std::set<std::string>{builder.run_id + "-step-1", builder.run_id + "-step-1-1",
                                        builder.run_id + "-step-1-2"}));
  EXPECT_NE(builder.log.err.find("exited with code 3; all processes start again (restart 2 of 2)"),
            std::string::npos);
}

TEST_F(Nodes, fail_once_restarts_are_used_up_and_at_once_for_other_failures) {
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->rank > 0) co_return co_await until_stopped(attempt);
    co_return failed(3);
  });
  builder.step.nodes.restarts = 1;
  EXPECT_EQ(run(runner).exit_code, 3);
  EXPECT_EQ(runner.started, 8);
  Runner lost([&](const Attempt&) -> async::Task<AttemptResult> {
    auto result = failed(3);
    result.failure->kind = FailureKind::infrastructure;
    co_return result;
  });
  EXPECT_TRUE(run(lost).failure);
  EXPECT_EQ(lost.started, 4);
}

TEST_F(Nodes, wait_for_all_without_done_first) {
  int ended = 0;
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->rank > 0) co_await async::sleep(std::chrono::milliseconds(20));
    ++ended;
    co_return AttemptResult{};
  });
  EXPECT_FALSE(run(runner).failure);
  EXPECT_EQ(ended, 4);
}

TEST_F(Nodes, share_the_gpus_or_give_each_process_its_own) {
  std::vector<AssignedGpu> gpus(4);
  for (unsigned i = 0; i < 4; ++i) gpus[i].index = i;
  std::map<unsigned, std::vector<unsigned>> seen;
  Runner runner([&](const Attempt& attempt) -> async::Task<AttemptResult> {
    for (const auto& gpu : attempt.gpus) seen[attempt.process->rank].push_back(gpu.index);
    if (attempt.process->rank == 3) co_return failed(1);
    co_return AttemptResult{};
  });
  builder.step.nodes.processes = per_gpu;
  const auto result = run(runner, gpus);
  EXPECT_EQ(result.failure->message, "rank 3 of 4, on node 1, GPU 3, exited with code 1");
  EXPECT_EQ(result.processes.at(2).gpus, std::vector<unsigned>{2});
  using Seen = std::map<unsigned, std::vector<unsigned>>;
  EXPECT_EQ(seen, (Seen{{0, {0, 1}}, {1, {0, 1}}, {2, {2, 3}}, {3, {2, 3}}}));
  seen.clear();
  builder.step.nodes.visible = VisibleGpus::own;
  EXPECT_EQ(run(runner, gpus).failure->message,
            "rank 3 of 4, on node 1, GPU 3, exited with code 1");
  EXPECT_EQ(seen, (Seen{{0, {0}}, {1, {1}}, {2, {2}}, {3, {3}}}));
  seen.clear();
  run(runner);
  EXPECT_EQ(runner.started, 4 + 4 + 2) << "a step without GPUs has one process on each node";
}

TEST_F(Nodes, give_the_outputs_of_the_first_node_or_of_all) {
  builder.output("model", "model").output("shards", "shards");
  builder.outputs[1].from_all_nodes = true;
  Runner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    const auto& [rank, ranks, node, nodes, local, locals, gpus, addresses] = *attempt.process;
    if (local == 0) test::write(attempt.outputs / "model", std::to_string(rank));
    if (local == 0) fs::create_directories(attempt.outputs / "shards");
    co_await async::sleep(std::chrono::milliseconds(10));
    test::write(attempt.outputs / "shards" / std::to_string(rank), "x");
    if (local == 1) fs::permissions(attempt.outputs / "shards", fs::perms(0555));
    co_return AttemptResult{};
  });
  EXPECT_FALSE(run(runner).failure);
  EXPECT_EQ(builder.written("model"), "0");
  std::vector<std::string> files;
  const auto shards = builder.folder.path() / "outputs" / "shards";
  for (const auto& file : fs::recursive_directory_iterator(shards))
    if (file.is_regular_file()) files.push_back(fs::relative(file.path(), shards));
  std::ranges::sort(files);
  EXPECT_EQ(files, (std::vector<std::string>{"0/0", "0/1", "1/2", "1/3"}));
  for (const auto* node : {"0", "1"}) fs::permissions(shards / node, fs::perms(0755));
}

TEST_F(Nodes, fail_if_one_lacks_an_output_of_all) {
  builder.output("shards", "shards");
  builder.outputs[0].from_all_nodes = true;
  Runner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    if (attempt.process->node == 0) test::write(attempt.outputs / "shards", "x");
    co_return AttemptResult{};
  });
  const auto result = run(runner);
  EXPECT_EQ(result.failure->kind, FailureKind::missing_output);
  EXPECT_EQ(result.failure->message,
            "succeeded, but its node 1 did not write the output 'shards', which is `from: all`");
}

TEST_F(Nodes, pass_on_the_message_of_the_failed_process) {
  Runner runner([](const Attempt& attempt) -> async::Task<AttemptResult> {
    test::write(attempt.scratch / failure_file_name,
                "of rank " + std::to_string(attempt.process->rank));
    if (attempt.process->rank == 3) co_return failed(1);
    co_return co_await until_stopped(attempt);
  });
  run(runner);
  EXPECT_EQ(core::read_file(builder.folder.path() / "scratch" / failure_file_name), "of rank 3");
}

TEST(NodeVariables, describe_a_process_and_the_others) {
  AttemptBuilder builder(test::shell("train"));
  builder.step.nodes = {.count = 2, .processes = 2};
  builder.environment["NCCL_DEBUG"] = "INFO";
  auto attempt = builder.attempt();
  const NodeAddresses addresses{{"10.0.0.2", "10.0.0.3"}, 29500};
  attempt.process = {.rank = 3,
                     .ranks = 4,
                     .node = 1,
                     .nodes = 2,
                     .local_rank = 1,
                     .local_ranks = 2,
                     .addresses = &addresses};
  auto variables = variables_of(attempt, {});
  std::erase_if(variables, [](const auto& variable) {
    return variable.first.starts_with("PIPE_") && !variable.first.starts_with("PIPE_NODE");
  });
  EXPECT_EQ(variables,
            (StringMap{{"MASTER_ADDR", "10.0.0.2"},
                       {"MASTER_PORT", "29500"},
                       {"RANK", "3"},
                       {"WORLD_SIZE", "4"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "2"},
                       {"NODE_RANK", "1"},
                       {"NNODES", "2"},
                       {"GROUP_RANK", "1"},
                       {"NCCL_DEBUG", "INFO"},
                       {"JAX_COORDINATOR_ADDRESS", "10.0.0.2:29500"},
                       {"JAX_NUM_PROCESSES", "4"},
                       {"JAX_PROCESS_ID", "3"},
                       {"TF_CONFIG", R"({"cluster":{"worker":["10.0.0.2:29500","10.0.0.2:29501",)"
                                     R"("10.0.0.3:29502","10.0.0.3:29503"]},)"
                                     R"("task":{"index":3,"type":"worker"}})"},
                       {"PIPE_NODE_RANK", "1"},
                       {"PIPE_NODE_COUNT", "2"},
                       {"PIPE_NODE_ADDRESSES", "10.0.0.2,10.0.0.3"}}));
}

TEST(NodeVariables, have_the_options_for_torchrun_where_it_starts_the_processes) {
  AttemptBuilder builder(test::shell("torchrun train.py"));
  builder.step.nodes = {.count = 2};
  auto attempt = builder.attempt();
  const NodeAddresses addresses{{"a", "b"}, 29500};
  attempt.process = {
      .rank = 1, .ranks = 2, .node = 1, .nodes = 2, .gpus_of_node = 4, .addresses = &addresses};
  const auto variables = node_variables(attempt);
  EXPECT_EQ(variables.at("PET_NNODES"), "2");
  EXPECT_EQ(variables.at("PET_NPROC_PER_NODE"), "4");
  EXPECT_EQ(variables.at("PET_NODE_RANK"), "1");
  EXPECT_EQ(variables.at("PET_MASTER_ADDR"), "a");
  EXPECT_EQ(variables.at("PET_MASTER_PORT"), "29500");
  EXPECT_EQ(variables.at("PET_RDZV_ID"), builder.run_id + "-step-1");
  attempt.number = 2;
  EXPECT_EQ(node_variables(attempt).at("PET_RDZV_ID"), builder.run_id + "-step-2");
  attempt.process->gpus_of_node = 0;
  EXPECT_EQ(node_variables(attempt).at("PET_NPROC_PER_NODE"), "1");
}

TEST(FreePorts, are_never_given_twice) {
  std::set<unsigned> ports;
  for (int i = 0; i < 50; ++i) {
    const auto first = free_ports(8);
    for (unsigned port = first; port < first + 8; ++port)
      EXPECT_TRUE(ports.insert(port).second) << port;
  }
  EXPECT_THROW(free_ports(100'000), core::EnvironmentError);
}

TEST(RankOfLine, finds_the_rank_before_a_line) {
  EXPECT_EQ(rank_of_line(rank_prefix(12) + "epoch 1"),
            (std::pair{12u, std::string_view("epoch 1")}));
  EXPECT_EQ(rank_of_line("[12] "), (std::pair{12u, std::string_view()}));
  for (const auto* line : {"", "[", "[1]", "[x] y", "[-1] y", "1] y", "[99999999999] y"})
    EXPECT_EQ(rank_of_line(line), std::nullopt) << line;
}

}  // namespace
}  // namespace pipeline::orchestrators
