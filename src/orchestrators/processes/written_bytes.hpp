/// @file
/// How much a process has written: what is seen of a download of an installer that says nothing
/// before its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators::processes {

/// Reports `1.2 GiB written` at most once a second, and only if it is 10 MB more than before. Ends
/// with the process, or once it is stopped.
async::Task<> report_written_bytes(pid_t process, std::function<void(std::string)> on_line,
                                   core::CancelSource& over);

}  // namespace pipeline::orchestrators::processes
