/// @file
/// The process that starts the steps' processes, and leaves none of them behind.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/file.hpp"

namespace pipeline::orchestrators {

/// What a process is started with.
struct LaunchRequest {
  const std::filesystem::path& program;
  const std::vector<std::string>& arguments;
  const std::vector<std::string>& environment;  ///< `NAME=VALUE`
  const std::filesystem::path& folder;
  int out, err;
  const std::vector<int>& control_groups;
  const std::vector<int>& inherited;
};

struct Launched {
  pid_t pid = 0;
  int error = 0;           ///< errno, if it could not be started; then there is no process.
  core::Descriptor reply;  ///< Becomes readable after ProcessReaper::finish(), for read_end().
};

struct LaunchEnd {
  int code = 0, status = 0;  ///< As siginfo_t has them.
  int left = 0;              ///< Processes that it has left, and that nobody here may kill.
};

/// A child process that is the parent of all steps' processes. What they leave is reparented to it
/// (PR_SET_CHILD_SUBREAPER), also what has a session of its own, has closed its descriptors and has
/// cleared its environment. A step's first process is such a reaper itself, so a process that comes
/// to the guardian has come from a step that has ended, and is killed. When the driver ends,
/// however that comes about, everything is killed.
class ProcessReaper {
 public:
  ProcessReaper() = default;
  ~ProcessReaper();
  ProcessReaper(const ProcessReaper&) = delete;
  ProcessReaper& operator=(const ProcessReaper&) = delete;

  /// Returns when the program runs, or could not be started. Starts the guardian. Throws
  /// EnvironmentError when there can be none.
  Launched launch(const LaunchRequest& request);
  /// Asks for the end of this process, its group and all that has come from it; answered at
  /// Launched::reply. Until then its number stays its own.
  void finish(pid_t pid);
  /// Waits for the answer to finish(). Nothing if the guardian has died.
  static std::optional<LaunchEnd> read_end(int reply);

 private:
  void start();
  bool send(const struct Request& request, const std::vector<int>& files);
  core::Descriptor
      socket_;  ///< Its other end is closed when this process ends, however that comes about.
  pid_t pid_ = -1;
};

}  // namespace pipeline::orchestrators
