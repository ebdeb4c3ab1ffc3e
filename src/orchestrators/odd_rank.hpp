/// @file
/// Finds the rank for which the other ranks of a stalled step wait.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pipeline::orchestrators {

/// The calls in which each rank's processes wait, as AttemptRunner::waits_of() returns them. Lines
/// of a node with an agent stand under the node's first rank.
using WaitsByRank = std::vector<std::pair<unsigned, std::vector<std::string>>>;
/// Returns a text on the only rank that does not wait like the others, which probably wait for this
/// rank: `rank 2 is stopped`, or `rank 2 waits for something else than the 7 others, which are
/// alike`. Empty if there is no such rank.
/// @param ranks_of_node number of ranks whose lines stand under one rank of `waits`
std::string odd_rank_text(const WaitsByRank& waits, unsigned ranks_of_node = 1);

}  // namespace pipeline::orchestrators
