/// @file
/// Runs one process in a session of its own, on the event loop.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/settings.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/usage.hpp"
#include "orchestrators/processes/process_reaper.hpp"

namespace pipeline::orchestrators::processes {

class Sandbox;

struct ProcessOptions {
  std::filesystem::path program;       ///< An executable file.
  std::vector<std::string> arguments;  ///< The arguments, beginning with the program's name.
  StringMap environment;               ///< The complete environment.
  std::filesystem::path folder;        ///< Its working directory.
  /// Descriptors that the process inherits, besides those of its input and output.
  std::vector<int> inherited;
  /// Open `cgroup.procs` files of the groups that the process joins.
  std::vector<int> control_groups;
  /// The sandbox that the process enters; null: none.
  std::shared_ptr<const Sandbox> sandbox = {};
  std::function<void(pid_t)> on_start = {};  ///< Receives the process once it runs.
  std::chrono::milliseconds grace{10'000};   ///< Time from SIGTERM to SIGKILL.
  /// The threads on which the memory of the process with its descendants is sampled; null: the
  /// reported peak is that of the largest process.
  asio::thread_pool* measured_on = nullptr;
};

struct ProcessEnd {
  bool exited = false;        ///< False if a signal ended it.
  int code = 0;               ///< Exit code, or the signal's number.
  int start_error = 0;        ///< errno if it could not be started.
  bool stopped = false;       ///< The process was stopped by `cancel`.
  bool ignored_stop = false;  ///< SIGTERM did not end it within `grace`.
  /// A descendant that could not be killed still has the process's stdout or stderr open.
  bool pipe_held = false;
  int left = 0;            ///< Number of descendants that this user may not kill.
  core::Usage usage = {};  ///< Usage of the process and its descendants.
  std::chrono::steady_clock::time_point began{}, ended{};
};

using OutputCallback = std::function<void(Stream, std::string_view)>;

/// Runs the process to its end; stdin is empty. A graceful stop sends SIGTERM to the process and
/// all its descendants, waits for all of them, and after `grace` sends SIGKILL.
/// StopLevel::immediate sends SIGKILL at once. When the process has ended without a stop, all its
/// descendants are killed, whatever session, descriptors and environment they have. A process that
/// a service starts on behalf of the step is not a descendant. An exception of `output` kills the
/// process's group and is rethrown.
async::Task<ProcessEnd> run_process(const ProcessOptions& options, ProcessReaper& reaper,
                                    core::CancelSource& cancel, OutputCallback output);

/// Returns the first executable file called `name` on `path` (in PATH's format); a name with `/` is
/// resolved against `folder`. Empty if there is none.
std::filesystem::path find_program(const std::string& name, std::string_view path,
                                   const std::filesystem::path& folder = {});

}  // namespace pipeline::orchestrators::processes
