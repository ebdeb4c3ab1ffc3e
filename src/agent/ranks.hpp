/// @file
/// The processes of one node of a step with `nodes`, that is, of a distributed step. Each process
/// has a rank: its number among the processes of all nodes.
#pragma once

namespace pipeline::agent {

/// Starts the command once for each process of this node, as soon as the agents of all nodes are
/// connected (meeting.hpp). `arguments` are options, and then the command:
///
///     --node K COUNT        number of this node, from 0, and number of all nodes
///     --processes COUNT     number of processes on this node
///     --addresses A,B,...   IP addresses of all nodes. `-`: one line of standard input has them.
///                           With `-` and a variable PIPE_NODE_MEETING, which has addresses of node
///                           0, the agents meet at the first of those that answers instead, and
///                           node 0 tells them all addresses
///     --addresses-within S  seconds within which the line of standard input must arrive
///     --port PORT           port at which node 0's agent listens
///     --id ID               the attempt's identifier, which agents of other attempts do not know.
///                           The variable PIPE_NODE_SECRET, which no other user of the machine
///                           sees, is appended to it
///     --fill NAME,...       variables in whose values marks are replaced: {rank}, {local_rank},
///                           {gpus}, {restart} (empty, later -1, -2, ...), and {node0}, {node1},
///                           ...
///     --own-gpus COUNT      number of GPUs of each process: {gpus} becomes their numbers, and of a
///                           list that Slurm has written to CUDA_VISIBLE_DEVICES, each process gets
///                           its own part
///     --restarts COUNT      how often all processes of all nodes are restarted after a failure
///     --first               the success of rank 0 ends the other processes of its node
///     --begun-within S      seconds within which node 0's agent must answer
///
/// Each line of a process is written with `[RANK] ` before it. Other lines are the agent's own:
/// `!met` once the addresses are known, and `!RANK CODE HOW TIME CPU MEMORY` at the end of a
/// process, with
///
///     CODE    its exit code, or 128 plus the number of the signal that ended it
///     HOW     `failed`; `again` if all processes restart because of the failure; or `ended` after
///             a success, and if this agent has ended the process
///     TIME    microseconds since 1970
///     CPU     its CPU time in microseconds
///     MEMORY  its largest memory in KiB
///
/// The first failure ends the other processes of the node: SIGTERM, and SIGKILL after ten seconds.
/// After it has received a SIGTERM, this agent only waits until its processes have ended, because
/// its own parent sends the signal to all descendants.
/// @return the exit code of the process that failed first; a signal counts as 128 plus its number
int run_ranks(char** arguments);

}  // namespace pipeline::agent
