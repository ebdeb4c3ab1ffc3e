/// @file
/// The processes of a step: the kernel functions in which they wait, what they have done, and
/// signals to them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <initializer_list>

#include "core/activity.hpp"

namespace pipeline::agent {

constexpr std::size_t max_waits = 7000;  ///< Bytes; a frame has at most 8000 (main.cpp).

/// Writes the waits of all descendants of this process as one line, separated by tabs. The line has
/// for each process `P4711 python3 train.py`, followed by ` (rank 3)` on a node with several ranks;
/// then for each kind of wait the state, the number of threads and the kernel's function (`S63
/// futex_wait_queue`). Processes for which there is no space are left out. Returns the number of
/// bytes, at most `max_waits`.
/// @param left_out children that are not a part of the step
std::size_t write_waits(char* text, std::initializer_list<pid_t> left_out);

/// Returns the CPU time and bytes of all descendants of this process and of their ended children.
/// Accounts that this user may not read count as nothing.
/// @param left_out children that are not a part of the step
core::Activity activity_of_descendants(std::initializer_list<pid_t> left_out);

/// Sends the signal to all descendants of this process; signal 0 only counts them. Returns the
/// number of processes that could be signalled.
/// @param left_out children that are not a part of the step
unsigned signal_descendants(int signal, std::initializer_list<pid_t> left_out);

}  // namespace pipeline::agent
