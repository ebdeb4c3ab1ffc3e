/// @file
/// Starts the steps' processes, and ensures that none of their descendants is left behind.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.hpp"

namespace pipeline::orchestrators::processes {

/// The parameters of a process to start.
struct LaunchRequest {
  const std::filesystem::path& program;
  const std::vector<std::string>& arguments;
  const std::vector<std::string>& environment;  ///< `NAME=VALUE`.
  const std::filesystem::path& folder;
  int out, err;  ///< Descriptors that become its standard output and error.
  const std::vector<int>& control_groups;
  const std::vector<int>& inherited;
  int sandbox;  ///< Descriptor of Sandbox; -1: none.
};

struct LaunchStart {
  pid_t pid = 0;
  int error = 0;  ///< errno if it could not be started; there is no process then.
};

struct LaunchEnd {
  int code = 0, status = 0;  ///< si_code and si_status of siginfo_t.
  int left = 0;              ///< Number of its descendants that this user may not kill.
  /// Usage of the process and all descendants that were waited for. The memory is that of the
  /// largest process; CPU times are sums.
  rusage usage = {};  ///< ru_maxrss is 0 if it is not known.
};

/// A child process that is the parent of all steps' processes. Orphaned descendants of these are
/// reparented to the reaper (PR_SET_CHILD_SUBREAPER), even those with a session of their own,
/// closed descriptors and a cleared environment. The first process of a step is such a subreaper
/// itself. So a process that is reparented to the reaper comes from a step whose first process has
/// ended, and is killed once finish() was called for that step. When the driver ends for any
/// reason, everything is killed.
class ProcessReaper {
 public:
  /// @param lock file that the reaper keeps locked as long as one of its processes may be running,
  /// also after the driver's death; empty: none
  explicit ProcessReaper(std::filesystem::path lock = {}) : lock_(std::move(lock)) {}
  ~ProcessReaper();
  ProcessReaper(const ProcessReaper&) = delete;
  ProcessReaper& operator=(const ProcessReaper&) = delete;

  /// Requests the start of a process. Starts the reaper if needed; throws EnvironmentError if the
  /// reaper cannot be started.
  /// @return a pipe that becomes readable for read_start() once the program is running or could not
  /// be started, and for read_end() after finish()
  core::Descriptor launch(const LaunchRequest& request);
  /// Waits for the result of launch(); returns nothing if the reaper has died.
  static std::optional<LaunchStart> read_start(int reply);
  /// Requests the end of this process, its group and all its descendants. Until the result is sent,
  /// the process number is not reused.
  void finish(pid_t pid);
  /// Waits for the result of finish(); returns nothing if the reaper has died.
  static std::optional<LaunchEnd> read_end(int reply);

  /// Returns true, and removes the lock file, if the reaper that had it locked has ended.
  static bool has_ended(const std::filesystem::path& lock);

 private:
  void start();
  bool send(const struct Request& request, const std::vector<int>& files);
  std::filesystem::path lock_;
  core::Descriptor socket_;  ///< The reaper sees the end of this process as the socket's end.
  pid_t pid_ = -1;           ///< The reaper; -1 before its first start.
};

}  // namespace pipeline::orchestrators::processes
