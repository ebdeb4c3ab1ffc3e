/// @file
/// What keeps a killed driver (`kill -9`) from leaving processes behind.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace pipeline::orchestrators {

/// A process of its own that outlives this one by a moment: it sleeps until this process is gone,
/// then kills the process groups that are left. They stand in memory that both share, so that a
/// step costs it no wake-up. PR_SET_PDEATHSIG alone would reach a step's first process, but not
/// those that it started.
class ProcessReaper {
 public:
  ProcessReaper() = default;
  ~ProcessReaper();
  ProcessReaper(const ProcessReaper&) = delete;
  ProcessReaper& operator=(const ProcessReaper&) = delete;
  /// A place for one process group: the child writes its number there before it executes anything,
  /// so that there is no moment in which it would be left behind; who asked for the place writes
  /// `unused` when the group is gone. Starts the guardian. Null where there is none (no process
  /// left to the user, too many groups): the steps run all the same.
  std::atomic<pid_t>* place();
  static constexpr pid_t unused = 0;

 private:
  void start();
  std::atomic<pid_t>* groups_ = nullptr;  ///< Shared memory.
  int pipe_ = -1;  ///< Its other end is closed when this process ends, however that comes about.
  pid_t pid_ = -1;
  bool started_ = false;
};

}  // namespace pipeline::orchestrators
