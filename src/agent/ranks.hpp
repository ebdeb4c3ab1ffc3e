/// @file
/// The processes of one node of a step with nodes.
#pragma once

namespace pipeline::agent {

/// Starts the command once for each process of this node, when the agents of all nodes are
/// connected (meeting.hpp). `arguments` are options, and then the command:
///
///     --node K COUNT        number of this node, and how many there are
///     --processes COUNT     of this node
///     --addresses A,B,...   of all nodes. `-`: a line of standard input has them, or, if a
///                           variable PIPE_NODE_MEETING has addresses of node 0, the agents learn
///                           them when they meet at the first of those that answers
///     --addresses-within S  seconds within which that line must come
///     --port PORT           of node 0's agent
///     --id ID               of the attempt: agents of other attempts do not know it. A variable
///                           PIPE_NODE_SECRET is added, which no other user of the machine sees
///     --fill NAME,...       variables in whose values marks are filled in: {rank}, {local_rank},
///                           {gpus}, {restart} (empty, later -1, -2, ...), and {node0}, {node1},
///                           ...
///     --own-gpus COUNT      number of GPUs of each process: {gpus} becomes their numbers, and
///                           CUDA_VISIBLE_DEVICES as Slurm has written it is cut to its part
///     --restarts COUNT      how often all processes of all nodes begin again after a failure
///     --first               the success of rank 0 ends the others of its node
///     --begun-within S      seconds within which node 0's agent must answer
///
/// Each line of a process is written with `[RANK] ` before it. Other lines are the agent's own:
/// `!met` once the addresses are known, and `!RANK CODE HOW TIME CPU MEMORY` at the end of a
/// process: its exit code, or 128 plus the number of its signal; `failed`, `again` if all begin
/// again because of it, or `ended`, also where this agent has ended it; the time in microseconds
/// since 1970; its CPU time in microseconds, and its largest memory in KiB.
///
/// The first failure ends the other processes of the node: SIGTERM, and SIGKILL after ten seconds.
/// After a SIGTERM, this process waits for its processes, and ends; the process that started it
/// sends them the signal.
/// @return the exit code of the process that failed first, as above
int run_ranks(char** arguments);

}  // namespace pipeline::agent
