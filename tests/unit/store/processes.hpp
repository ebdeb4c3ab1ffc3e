/// @file
/// Child processes that tests end.
#pragma once

#include <chrono>

#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>

namespace pipeline::store {

/// Ends this process when it has worked for so long: by its own clock, which stands still while the
/// machine does something else.
inline void end_after(std::chrono::milliseconds work) {
  const itimerval end{{}, {0, std::chrono::microseconds(work).count()}};
  ::setitimer(ITIMER_PROF, &end, nullptr);
}

/// Returns the exit code of a child, or 1000 and the number of the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace pipeline::store
