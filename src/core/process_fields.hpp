/// @file
/// The kernel's data about a process.
#pragma once

#include <sys/types.h>

#include <string>

namespace pipeline::core {

/// Returns the fields of /proc/PID/stat (proc(5)) from the third, the state: `S 1 4711 ...`. The
/// first two are the number and the name, which may have any characters. Empty if there is no such
/// process.
std::string process_fields(pid_t pid);

}  // namespace pipeline::core
