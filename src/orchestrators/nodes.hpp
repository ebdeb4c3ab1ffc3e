/// @file
/// The variables and numbers by which a process of a step with nodes finds the others.
#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

/// In place of a node's number with NodeAddresses::are_alike; no text of a user's has it.
inline constexpr const char* node_mark = "\x1enode\x1e";
/// Returns the number of the node, or its mark.
std::string node_text(const NodeProcess& process);

/// Returns the variables by which torchrun, PyTorch, Lightning, JAX and TensorFlow find the other
/// processes, and PIPE_NODE_*. docs/nodes.md has them in a table. With NodeAddresses::has_agents
/// they are those of all processes of the node, with marks that its agent fills in.
StringMap node_variables(const AttemptSpec& attempt);
/// The value of CUDA_VISIBLE_DEVICES in them for which an agent writes each process's own GPUs.
inline constexpr const char* gpus_mark = "{gpus}";
/// The variable with NodeAddresses::secret, which the agent (agent/ranks.cpp) takes for itself.
inline constexpr const char* agent_secret_name = "PIPE_NODE_SECRET";
/// Returns the words before the command of a node whose processes `agent` starts.
std::vector<std::string> agent_words(const AttemptSpec& attempt, const std::string& agent);

/// Returns the number of processes of each node, which has so many GPUs.
unsigned processes_of(const NodesSpec& nodes, std::size_t gpus_of_node);

/// Returns `2 nodes with 4 processes each: 8 processes and 8 GPUs in all`, for a step with nodes.
std::string nodes_text(const StepSpec& step);

/// Returns the first of `count` consecutive ports of this machine that nothing listens on. The
/// kernel gives none of them to connections (ip_local_port_range), and no other call in this
/// process within a minute returns one of them. Throws EnvironmentError if there are none.
unsigned free_ports(unsigned count);

/// Pause of a step with nodes that has given everything back: two that did so at the same time try
/// again at different ones.
inline constexpr std::chrono::seconds max_gang_pause{30};
/// Returns a pause of at most `max_pause`, and at least a thirtieth of that.
std::chrono::milliseconds pause_of(std::chrono::milliseconds max_pause, std::minstd_rand& random);

/// The end of a process, as the agent of its node tells it.
struct RankEnd {
  unsigned rank = 0;
  int code = 0;             ///< Exit code, or 128 plus the number of the signal.
  bool has_failed = false;  ///< By itself, and no restart follows.
  std::chrono::steady_clock::time_point time;
  std::chrono::microseconds cpu{};
  std::uint64_t peak_memory = 0;  ///< Bytes.
};
/// Returns nothing for a line that is another one.
std::optional<RankEnd> rank_end_of(std::string_view line);

/// The calls in which each rank's processes wait, as AttemptRunner::waits_of() returns them; those
/// of a node with an agent are its first rank's.
using WaitsByRank = std::vector<std::pair<unsigned, std::vector<std::string>>>;
/// Returns `rank 2 is stopped`, or `rank 2 waits for something else than the 7 others, which are
/// alike`: that rank is what the others wait for. Empty if there is no such rank.
/// @param ranks_of_node more than one if the lines are those of nodes with several
std::string odd_rank_text(const WaitsByRank& waits, unsigned ranks_of_node = 1);

/// Returns `[3] ` before a line of rank 3 in a step's log.
std::string rank_prefix(unsigned rank);
/// Returns the rank and the line without rank_prefix(); nothing for a line without one.
std::optional<std::pair<unsigned, std::string_view>> rank_of_line(std::string_view line);

}  // namespace pipeline::orchestrators
