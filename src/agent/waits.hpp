/// @file
/// The processes of a step: the kernel functions in which they wait, what they have done, and
/// signals to them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <initializer_list>

#include "core/activity.hpp"

namespace pipeline::agent {

constexpr std::size_t max_waits = 7000;

/// Writes the waits of all processes below this one in a line, separated by tabs: for each process
/// `P4711 python3 train.py`, with ` (rank 3)` behind it on a node with several ranks, then for each
/// kind of wait the state, the number of threads and the kernel's function (`S63
/// futex_wait_queue`). Processes for which there is no space are left out. Returns the number of
/// bytes, at most `max_waits`.
/// @param left_out children that are not a part of the step
std::size_t write_waits(char* text, std::initializer_list<pid_t> left_out);

/// Returns what all processes below this one have done, with their children that have ended. What
/// this user may not see counts as nothing.
/// @param left_out children that are not a part of the step
core::Activity activity_of_descendants(std::initializer_list<pid_t> left_out);

/// Sends the signal to all processes below this one; 0 sends none. Returns their number.
/// @param left_out children that are not a part of the step
unsigned signal_descendants(int signal, std::initializer_list<pid_t> left_out);

}  // namespace pipeline::agent
