/// @file
/// The memory that a forked process without exec has of its parent.
#pragma once

namespace pipeline::orchestrators {

/// Gives back the heap and the program's pages, after a fork whose child uses none of the heap, and
/// lets the kernel count this process's peak of memory again. A process has this one's peak from
/// its start until its exec, and the kernel counts that to its own. Allocates nothing. Does nothing
/// under a sanitizer, whose records are on the heap.
void drop_inherited_memory();

}  // namespace pipeline::orchestrators
