#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <set>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"
#include "support/agent_file.hpp"

namespace pipeline::kubernetes_api {
namespace {

struct Said {
  int code = -1;
  std::vector<std::string> lines, ends;  ///< Without the ends' times.
  bool has(const std::string& line) const { return std::ranges::count(lines, line) > 0; }
};

unsigned free_port() {
  const core::Descriptor file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(file.get(), at, size), 0);
  EXPECT_EQ(::getsockname(file.get(), at, &size), 0);
  return ntohs(address.sin_port);
}

/// Agents of nodes that are processes of this machine.
class AgentRanks : public testing::Test {
 protected:
  AgentRanks() { test::write_agent(program); }

  /// Runs the agent of a node as the first process of a container would.
  Said run(unsigned node, unsigned nodes, const std::string& options, const std::string& script,
           const std::string& before = {}) {
    const auto own = core::shell_quote(program.string());
    const auto line = before +
                      "RANK={rank} LOCAL={local_rank} ID=a{restart} MAIN={node0} GPUS={gpus} "
                      "CUDA_VISIBLE_DEVICES=9,8,7,6 " +
                      own + " init " + own + " ranks --node " + std::to_string(node) + " " +
                      std::to_string(nodes) + " --port " + std::to_string(port) +
                      " --id secret --fill RANK,LOCAL,ID,MAIN,GPUS,CUDA_VISIBLE_DEVICES " +
                      options + " sh -c " + core::shell_quote(script) + " 2>&1";
    FILE* output = popen(line.c_str(), "r");
    Said said;
    char bytes[4096];
    while (fgets(bytes, sizeof bytes, output)) {
      std::string text(bytes);
      text.pop_back();
      const auto words = core::split(text, ' ');
      if (text.starts_with('!') && words.size() > 3)
        said.ends.push_back(std::string(words[0]) + " " + std::string(words[1]) + " " +
                            std::string(words[2]));
      else
        said.lines.push_back(std::move(text));
    }
    const int status = pclose(output);
    said.code = WEXITSTATUS(status);
    return said;
  }
  /// Runs two nodes at once.
  std::pair<Said, Said> run_both(const std::string& options, const std::string& script) {
    auto other = std::async(std::launch::async, [&] { return run(1, 2, options, script); });
    auto first = run(0, 2, options, script);
    return {std::move(first), other.get()};
  }

  core::TemporaryFolder folder;
  std::filesystem::path program = folder.path() / "agent";
  unsigned port = free_port();
  const std::string two = "--processes 2 --addresses 127.0.0.1,127.0.0.2 ";
};

TEST_F(AgentRanks, begin_with_their_own_variables_once_all_nodes_are_connected) {
  const auto mark = core::shell_quote((folder.path() / "began").string());
  auto late = std::async(std::launch::async, [&] {
    return run(0, 2, two + "--own-gpus 2",
               "test -e " + mark + " && echo $RANK $LOCAL $ID $MAIN $GPUS of $CUDA_VISIBLE_DEVICES",
               "sleep 0.5; touch " + mark + "; ");
  });
  const auto early = run(1, 2, two, "test -e " + mark + " && echo $RANK $LOCAL $ID $MAIN $GPUS");
  const auto main = late.get();
  EXPECT_EQ(early.code, 0) << "the processes began before node 0 was there";
  EXPECT_EQ(main.code, 0);
  EXPECT_TRUE(main.has("[0] 0 0 a 127.0.0.1 0,1 of 9,8"));
  EXPECT_TRUE(main.has("[1] 1 1 a 127.0.0.1 2,3 of 7,6"));
  EXPECT_TRUE(early.has("[2] 2 0 a 127.0.0.1"));
  EXPECT_TRUE(early.has("[3] 3 1 a 127.0.0.1"));
}

TEST_F(AgentRanks, end_with_the_first_failure_of_their_node) {
  const auto said = run(0, 1, "--processes 3 --addresses 127.0.0.1",
                        "trap 'echo told; exit 9' TERM; echo here; "
                        "if [ $RANK = 1 ]; then sleep 0.3; printf 'no batch' >&2; exit 3; fi; "
                        "sleep 100 & wait");
  EXPECT_EQ(said.code, 3);
  EXPECT_TRUE(said.has("[1] no batch")) << "a last line without an end";
  EXPECT_TRUE(said.has("[0] told"));
  EXPECT_TRUE(said.has("[2] told"));
  EXPECT_EQ(std::set(said.ends.begin(), said.ends.end()),
            (std::set<std::string>{"!0 9 ended", "!1 3 failed", "!2 9 ended"}));
}

TEST_F(AgentRanks, leave_no_process_behind) {
  const auto alive = folder.path() / "alive";
  const auto said = run(0, 1, "--processes 1 --addresses 127.0.0.1",
                        "(trap '' TERM; while :; do touch " + core::shell_quote(alive.string()) +
                            "; sleep 0.05; done) & sleep 0.2; exit 4");
  EXPECT_EQ(said.code, 4);
  std::filesystem::remove(alive);
  usleep(300'000);
  EXPECT_FALSE(std::filesystem::exists(alive));
}

TEST_F(AgentRanks, begin_again_in_place_on_all_nodes_under_another_id) {
  const auto [main, other] = run_both(
      two + "--restarts 2",
      "echo $ID; sleep 0.3; if [ $RANK = 3 ] && [ $ID != a-2 ]; then kill -9 $$; fi; sleep 0.3");
  EXPECT_EQ(main.code, 0);
  EXPECT_EQ(other.code, 0);
  for (const auto* id : {"a", "a-1", "a-2"}) {
    EXPECT_TRUE(main.has("[0] " + std::string(id)));
    EXPECT_TRUE(other.has("[2] " + std::string(id)));
  }
  EXPECT_EQ(std::ranges::count(other.ends, "!3 137 again"), 2);
  EXPECT_TRUE(other.has(
      "[3] [nodes] ended with exit code 137; all processes start again (restart 2 of 2)"));
}

TEST_F(AgentRanks, fail_once_the_restarts_are_used_up) {
  const auto said = run(0, 1, "--processes 2 --addresses 127.0.0.1 --restarts 1",
                        "sleep 0.1; [ $RANK = 0 ] && exit 5; sleep 100");
  EXPECT_EQ(said.code, 5);
  EXPECT_EQ(std::ranges::count(said.ends, "!0 5 again"), 1);
  EXPECT_EQ(std::ranges::count(said.ends, "!0 5 failed"), 1);
}

TEST_F(AgentRanks, do_not_restart_a_program_that_does_not_exist) {
  const auto said = run(0, 1, "--processes 1 --addresses 127.0.0.1 --restarts 3", "exec /missing");
  EXPECT_EQ(said.code, 127);
  EXPECT_EQ(said.ends, (std::vector<std::string>{"!0 127 failed"}));
}

TEST_F(AgentRanks, end_with_the_success_of_rank_0_if_that_is_enough) {
  const auto said = run(0, 1, "--processes 2 --addresses 127.0.0.1 --first",
                        "[ $RANK = 0 ] && exit 0; exec sleep 100");
  EXPECT_EQ(said.code, 0);
}

TEST_F(AgentRanks, report_why_node_0_cannot_be_reached) {
  const auto said = run(1, 2, two + "--begun-within 1", "true");
  EXPECT_EQ(said.code, 125);
  EXPECT_TRUE(said.has("pipe: node 1 cannot reach node 0 at 127.0.0.1:" + std::to_string(port) +
                       ": Connection refused"));
}

TEST_F(AgentRanks, do_not_begin_with_agents_of_other_attempts) {
  auto foreign = std::async(std::launch::async, [&] {
    return run(1, 2, "--processes 1 --addresses 127.0.0.1,127.0.0.1 --id other", "echo foreign",
               "sleep 0.2; timeout 2 env ");
  });
  const auto main =
      run(0, 2, "--processes 1 --addresses 127.0.0.1,127.0.0.1", "echo main", "timeout 1 env ");
  EXPECT_TRUE(main.lines.empty()) << main.lines.front();
  EXPECT_TRUE(foreign.get().lines.empty());
}

TEST_F(AgentRanks, do_not_begin_with_an_agent_that_lacks_the_secret) {
  const std::string one = "--processes 1 --addresses 127.0.0.1,127.0.0.1";
  auto foreign = std::async(std::launch::async, [&] {
    return run(1, 2, one, "echo foreign", "sleep 0.2; timeout 2 env ");
  });
  const auto main = run(0, 2, one, "echo main", "timeout 1 env PIPE_NODE_SECRET=x ");
  EXPECT_TRUE(main.lines.empty()) << main.lines.front();
  EXPECT_TRUE(foreign.get().lines.empty());
}

TEST_F(AgentRanks, share_a_secret_that_their_processes_do_not_have) {
  const auto script = "echo ${PIPE_NODE_SECRET-none}", word = "PIPE_NODE_SECRET=x ";
  auto other = std::async(std::launch::async, [&] { return run(1, 2, two, script, word); });
  EXPECT_TRUE(run(0, 2, two, script, word).has("[0] none"));
  EXPECT_TRUE(other.get().has("[3] none"));
}

TEST_F(AgentRanks, begin_although_others_keep_connections_open) {
  auto main = std::async(std::launch::async, [&] {
    return run(0, 2, two, "echo $RANK", "ulimit -n 100; timeout 20 env ");
  });
  std::vector<core::Descriptor> others;
  constexpr std::size_t more_than_descriptors = 200;
  while (others.size() < more_than_descriptors) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    core::Descriptor file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(file.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      others.push_back(std::move(file));
    else
      usleep(10'000);
  }
  EXPECT_EQ(run(1, 2, two, "echo $RANK", "timeout 20 env ").code, 0);
  EXPECT_TRUE(main.get().has("[0] 0"));
}

TEST_F(AgentRanks, exchange_their_addresses_when_they_connect) {
  const auto found = [&](unsigned node) {
    return run(node, 2, "--processes 1 --addresses -", "echo $MAIN ${PIPE_NODE_MEETING-unset}",
               "PIPE_NODE_MEETING=no-address,127.0.0.2 ");
  };
  auto other = std::async(std::launch::async, [&] { return found(1); });
  EXPECT_TRUE(found(0).has("[0] 127.0.0.2 unset"));
  EXPECT_TRUE(other.get().has("[1] 127.0.0.2 unset"));
}

TEST_F(AgentRanks, need_the_address_of_node_0_on_other_nodes_only) {
  const auto found = [&](unsigned node, const std::string& meeting) {
    return run(node, 2, "--processes 1 --addresses - --begun-within 10", "echo $MAIN",
               "PIPE_NODE_MEETING=" + meeting + " ");
  };
  auto other = std::async(std::launch::async, [&] { return found(1, "127.0.0.1"); });
  EXPECT_TRUE(found(0, "").has("[0] 127.0.0.1"));
  EXPECT_TRUE(other.get().has("[1] 127.0.0.1"));
  const auto lost = run(1, 2, "--processes 1 --addresses - --begun-within 0", "echo begins",
                        "PIPE_NODE_MEETING= ");
  EXPECT_EQ(lost.code, 125);
  EXPECT_TRUE(lost.has("pipe: node 1 cannot reach node 0: its address is not known"));
}

TEST_F(AgentRanks, fail_if_no_driver_sends_the_addresses_in_time) {
  const auto said =
      run(0, 2, "--processes 1 --addresses - --addresses-within 1", "echo begins", "sleep 1.5 | ");
  EXPECT_EQ(said.code, 125);
  EXPECT_TRUE(said.has("pipe: the driver has not sent the addresses of the other nodes in time"));
  EXPECT_FALSE(said.has("[0] begins"));
}

TEST_F(AgentRanks, read_addresses_that_the_driver_sends_later) {
  const auto said = run(0, 1, "--processes 1 --addresses -", "echo $MAIN; read line || echo none",
                        "(sleep 0.2; echo 10.0.0.7; sleep 0.2) | ");
  EXPECT_EQ(said.lines, (std::vector<std::string>{"!met", "[0] 10.0.0.7", "[0] none"}));
}

}  // namespace
}  // namespace pipeline::kubernetes_api
