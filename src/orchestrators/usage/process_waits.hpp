/// @file
/// The calls that processes of this machine wait in, as the kernel shows them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipeline::orchestrators::usage {

/// Returns a process and all of its descendants; the process itself is first.
std::vector<pid_t> process_tree(pid_t root, const std::filesystem::path& proc = "/proc");

/// Returns a line for each process, with one clause for each kind of wait of its threads:
/// `4711 python3 train.py: 3 threads sleep in futex_wait_queue, 1 thread runs`. On a node with
/// several ranks, the process's rank follows the command, as in `(rank 3)`. Processes that have
/// ended are left out, as are the kernel's function and the rank where this user may not see them.
std::vector<std::string> waits_of_processes(const std::vector<pid_t>& pids,
                                            const std::filesystem::path& proc = "/proc");

/// Numbers of threads of one process by state and function.
using ProcessWaits = std::map<std::pair<char, std::string>, std::size_t>;

/// Returns the line of one process. @param process its number and command
std::string wait_line(const std::string& process, const ProcessWaits& waits);

/// Returns `sleeps in futex_wait_queue` for a thread's state in /proc (`S`, `D`, `R`, ...) and the
/// kernel's function that the thread waits in. An empty text, `0` or `-` stands for an unknown
/// function.
std::string wait_text(char state, const std::string& function, bool is_plural = false);

}  // namespace pipeline::orchestrators::usage
