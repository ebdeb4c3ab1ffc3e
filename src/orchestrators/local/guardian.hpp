/// @file
/// What keeps a killed driver (`kill -9`) from leaving processes behind.
#pragma once

#include <sys/types.h>

namespace pipeline::local {

/// A process of its own that outlives this one by a moment: told of every process group that is started and ended, it kills those that are left when this
/// process is gone. PR_SET_PDEATHSIG alone would reach a step's first process, but not those that it has started.
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
  void tell(pid_t group);
  int pipe_ = -1;
  pid_t pid_ = -1;
  bool started_ = false;
};

}  // namespace pipeline::local
