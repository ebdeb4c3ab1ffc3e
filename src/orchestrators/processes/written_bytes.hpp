/// @file
/// Reports how many bytes a process has written. This shows the progress of a download by an
/// installer that prints nothing before its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators::processes {

/// Calls `on_line` with `1.2 GiB written` at most once a second, and only after at least 10 MB
/// since the last call. Returns when the process has ended, or `over` is stopped.
async::Task<> report_written_bytes(pid_t process, std::function<void(std::string)> on_line,
                                   core::CancelSource& over);

}  // namespace pipeline::orchestrators::processes
