/// @file
/// Programs that make files of images, run by `sh`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/process_reaper.hpp"

namespace pipeline::orchestrators::slurm {

struct ShellWork {
  std::string program;  ///< Looked for on PATH; `command` begins with it.
  std::string arguments;
  StringMap variables;  ///< Besides the caller's.
  std::filesystem::path folder;
  std::function<void(std::string_view)> on_output = {};  ///< Receives what it says.
};

struct WorkEnd {
  bool is_missing = false;  ///< The program is not on PATH.
  bool succeeded = false;
  int code = 0;      ///< Exit code, or the signal's number.
  std::string said;  ///< `: ` and its last lines; empty if it said nothing.
};

/// Throws EnvironmentError when it is stopped.
async::Task<WorkEnd> run_work(ShellWork work, processes::ProcessReaper& reaper,
                              core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::slurm
