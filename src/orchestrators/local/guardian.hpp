/// @file
/// What keeps a killed driver (`kill -9`) from leaving processes behind.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace pipeline::local {

/// A process of its own that outlives this one by a moment: it sleeps until this process is gone, then kills the process groups that are left. They stand
/// in memory that both share, so that a step costs it no wake-up. PR_SET_PDEATHSIG alone would reach a step's first process, but not those that it started.
class Guardian {
 public:
  Guardian() = default;
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  /// Starts the guardian with the first group. Without one (no process left to the user) the steps run all the same.
  void watch(pid_t group);
  void forget(pid_t group);

 private:
  void start();
  std::atomic<pid_t>* groups_ = nullptr;  ///< Shared memory; 0 is a free place.
  int pipe_ = -1;                         ///< Its other end is closed when this process ends, however that comes about.
  pid_t pid_ = -1;
  bool started_ = false;
};

}  // namespace pipeline::local
