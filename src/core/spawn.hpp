/// @file
/// Child processes by vfork: cheap however large this process is. Until exec the child runs in this
/// process's memory, which stands still: all that it needs is made before, and nothing may be
/// allocated in it. Every child is started here: programs that are asked something through
/// Boost.Process (net/child.hpp), whose launcher this is, and steps' processes
/// (orchestrators/local/process.cpp), which enter a cgroup and are stopped with their group.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace pipeline::core {

/// Of words for exec, as it wants them; they must stay as they are meanwhile.
inline std::vector<char*> exec_pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// The child's first words: a session of its own, the standard handlers, and its end with the
/// parent's.
inline void begin_child(pid_t parent, int when_parent_dies) {
  setsid();
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) {
      action.sa_handler = SIG_DFL;
      action.sa_flags = 0;
      sigaction(signal, &action, nullptr);
    }
  }
  prctl(PR_SET_PDEATHSIG, when_parent_dies);
  if (getppid() != parent) _exit(127);
}

/// The child's last words before exec: signals reach it again.
inline void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// @param launch runs in the child, and ends with exec or _exit
/// @return the child; -1 and errno where there is none
template <class Launch>
[[gnu::noinline]] pid_t start_child(Launch& with, void (*launch)(Launch&)) {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);  // no handler of ours may run in the child
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t pid = vfork();
#pragma GCC diagnostic pop
  if (pid == 0) {
    launch(with);
    _exit(127);
  }
  const int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace pipeline::core
