/// @file
/// A lock by which several `pipe` processes share work on a file or folder.
#pragma once

#include <filesystem>
#include <functional>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/file.hpp"

namespace pipeline::orchestrators::processes {

/// Locks the file until the returned descriptor is closed. Waits for other holders in this process
/// and in others, and calls `on_wait` once before it waits. Throws EnvironmentError when `cancel`
/// is stopped during the wait.
async::Task<core::Descriptor> take_lock(std::filesystem::path file, std::function<void()> on_wait,
                                        core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::processes
