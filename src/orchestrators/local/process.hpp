/// @file
/// One process in a session of its own, on the event loop.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/settings.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "orchestrators/local/process_reaper.hpp"

namespace pipeline::orchestrators {

struct ProcessOptions {
  std::filesystem::path program;       ///< An executable file.
  std::vector<std::string> arguments;  ///< With the name that it is called by as the first.
  StringMap environment;               ///< All of it.
  std::filesystem::path folder;        ///< Its working directory.
  std::vector<int>
      inherited;  ///< Descriptors that the process gets, besides those of its input and output.
  std::vector<int> control_groups;          ///< Open `cgroup.procs` files that the process joins.
  std::chrono::milliseconds grace{10'000};  ///< From SIGTERM to SIGKILL.
};

struct ProcessEnd {
  bool exited = false;        ///< Else a signal ended it.
  int code = 0;               ///< Exit code, or the signal's number.
  int start_error = 0;        ///< errno, if it could not be started.
  bool stopped = false;       ///< Because `cancel` said so.
  bool ignored_stop = false;  ///< SIGTERM did not end it within `grace`.
  bool pipe_held =
      false;     ///< Some process that could not be killed still has its stdout or stderr.
  int left = 0;  ///< Processes that it has left and that this user may not kill.
};

using OutputCallback = std::function<void(Stream, std::string_view)>;

/// Runs it to its end; stdin is empty. Stopping it means SIGTERM to the group, after `grace`
/// SIGKILL; at once for StopLevel::immediate. When the process has ended, all that has come from it
/// is killed, whatever session, descriptors and environment it has made for itself. An exception of
/// `output` kills the group and is thrown on.
async::Task<ProcessEnd> run_process(const ProcessOptions& options, ProcessReaper& reaper,
                                    core::CancelSource& cancel, OutputCallback output);

/// The first file called `name` on `path` (as PATH) that may be executed; a name with `/` is taken
/// below `folder`. Empty if there is none.
std::filesystem::path find_program(const std::string& name, std::string_view path,
                                   const std::filesystem::path& folder = {});

}  // namespace pipeline::orchestrators
