/// @file
/// The variables and numbers by which a process of a step with nodes finds the others.
#pragma once

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

/// Stands in place of a node's number with NodeAddresses::nodes_share_description. Its control
/// characters (record separators) do not occur in texts of users.
inline constexpr const char* node_mark = "\x1enode\x1e";
/// Returns the number of the node; node_mark with NodeAddresses::nodes_share_description.
std::string node_text(const NodeProcess& process);

/// Returns the variables by which torchrun, PyTorch, Lightning, JAX and TensorFlow find the other
/// processes, and PIPE_NODE_*. docs/nodes.md has them in a table. With NodeAddresses::has_agents,
/// all processes of a node get these variables, and marks such as `{rank}` in the values are
/// replaced by the node's agent for each process.
StringMap node_variables(const AttemptSpec& attempt);
/// The value of CUDA_VISIBLE_DEVICES that an agent replaces by each process's own GPUs.
inline constexpr const char* gpus_mark = "{gpus}";
/// Name of the variable with NodeAddresses::secret. The agent (agent/ranks.cpp) reads it, and does
/// not pass it on to the step.
inline constexpr const char* agent_secret_name = "PIPE_NODE_SECRET";
/// Returns the words that stand before the step's command to let an agent start a node's processes.
/// @param agent path of the agent's program
std::vector<std::string> agent_words(const AttemptSpec& attempt, const std::string& agent);

/// Returns the number of processes on each node.
unsigned processes_of(const NodesSpec& nodes, std::size_t gpus_of_node);

/// Returns `2 nodes with 4 processes each: 8 processes and 8 GPUs in all`, for a step with nodes.
std::string nodes_text(const StepSpec& step);

/// Returns the first of `count` consecutive ports of this machine that nothing listens on. The
/// kernel gives none of them to connections (ip_local_port_range), and no other call in this
/// process within a minute returns one of them. Throws EnvironmentError if there are none.
unsigned free_ports(unsigned count);

/// Longest pause before a step with nodes tries again after it has released everything.
inline constexpr std::chrono::seconds max_gang_pause{30};
/// Returns a random pause between a thirtieth of `max_pause` and `max_pause`, so that two steps
/// that have released their nodes at the same time try again at different times.
std::chrono::milliseconds pause_of(std::chrono::milliseconds max_pause, std::minstd_rand& random);

}  // namespace pipeline::orchestrators
