/// @file
/// The calls that the processes of a step wait in, as their agent writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators::usage {

/// Reads the frame that the agent writes for a stalled step (agent/waits.hpp). Returns a line for
/// each process, as waits_of_processes() does, without unreadable ones.
/// @param text untrusted: a step can write to its agent's log
std::vector<std::string> read_agent_waits(std::string_view text);

}  // namespace pipeline::orchestrators::usage
