/// @file
/// The processes below a process.
#pragma once

#include <sys/types.h>

#include <vector>

namespace pipeline::agent {

/// A process of the machine or container, and its parent.
struct ProcessParent {
  pid_t pid, parent;
};

/// Returns the descendants of a process among all processes, in the order of their numbers. Pure.
std::vector<pid_t> descendants_of(pid_t ancestor, std::vector<ProcessParent> all);

}  // namespace pipeline::agent
