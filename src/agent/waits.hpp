/// @file
/// What the processes of a step that has stalled wait in, as the kernel shows it in the pod.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <initializer_list>

namespace pipeline::kubernetes_api {

constexpr std::size_t max_waits = 7000;

/// Writes what the threads of all processes below this one wait in, in one line: for each process
/// `P4711 python3 train.py`, then for each kind of wait its state, the number of its threads and
/// the kernel's function (`S63 futex_wait_queue`), all of them with a tab between. Processes that
/// find no room are left out. Returns the number of bytes, at most `max_waits`.
/// @param left_out children that are not a part of the step
std::size_t write_waits(char* text, std::initializer_list<pid_t> left_out);

}  // namespace pipeline::kubernetes_api
