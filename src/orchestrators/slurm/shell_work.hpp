/// @file
/// Runs programs that make or change image files, by `sh`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/process_reaper.hpp"

namespace pipeline::orchestrators::slurm {

struct ShellWork {
  std::string program;           ///< Name of a program on PATH.
  std::string arguments;         ///< Its arguments in the shell's syntax.
  StringMap variables;           ///< Added to the variables of this process.
  std::filesystem::path folder;  ///< Its working folder.
  std::function<void(std::string_view)> on_output = {};  ///< Receives stdout and stderr.
};

struct WorkEnd {
  bool is_missing = false;  ///< The program is not on PATH.
  bool succeeded = false;
  /// The exit code, or the number of the signal that ended the program; which of them is not told.
  int code = 0;
  /// For messages: `: ` and the last lines of output; empty without output.
  std::string output_end;
};

/// Runs the program to its end. Throws EnvironmentError when `cancel` is stopped.
async::Task<WorkEnd> run_work(ShellWork work, processes::ProcessReaper& reaper,
                              core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::slurm
