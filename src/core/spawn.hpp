/// @file
/// Starts child processes by vfork, whose cost does not depend on the size of this process. Until
/// exec, the child runs in this process's memory while the parent is suspended. Everything that the
/// child needs is prepared before, and the child must not allocate memory. All children are started
/// here: external programs through Boost.Process (net/child.hpp), which uses this launcher, and
/// steps' processes (orchestrators/processes/process.cpp), which enter a cgroup and are stopped
/// with their group.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

namespace pipeline::core {

/// Returns the words as exec takes them; the words must not change meanwhile.
inline std::vector<char*> exec_pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// Restores default signal handlers; called in the child.
inline void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) {
      action.sa_handler = SIG_DFL;
      action.sa_flags = 0;
      sigaction(signal, &action, nullptr);
    }
  }
}

/// First call in the child: starts a session, restores default signal handlers, and ties the
/// child's life to its parent's.
/// @param death_signal sent to the child when its parent dies
inline void begin_child(pid_t parent, int death_signal) {
  setsid();
  reset_signals();
  prctl(PR_SET_PDEATHSIG, death_signal);
  if (getppid() != parent) _exit(127);  // The parent died before prctl().
}

/// The limit of open files with which this process was started; set by raise_open_files().
inline std::optional<rlimit> original_open_files;

/// Raises the soft limit of open files as far as the hard one allows. Children get the old limit
/// back, because programs that call select() count on it.
inline void raise_open_files() {
  constexpr rlim_t enough = 1 << 20;  // Linux' default of fs.nr_open, the largest hard limit.
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlimit raised{std::max(limit.rlim_cur, std::min(limit.rlim_max, enough)), limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) original_open_files = limit;
}

/// Last call in the child before exec: restores the limit of open files and unblocks signals.
inline void prepare_exec() {
  if (original_open_files) setrlimit(RLIMIT_NOFILE, &*original_open_files);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Starts a child process, which calls `launch(context)`.
/// @param launch ends with exec or _exit
/// @return the child's pid; -1, with errno, if it cannot be started
template <class Context>
[[gnu::noinline]] pid_t start_child(Context& context, void (*launch)(Context&)) {
  sigset_t all, before;
  sigfillset(&all);
  // No signal handler of this program may run in the child.
  sigprocmask(SIG_SETMASK, &all, &before);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t pid = vfork();
#pragma GCC diagnostic pop
  if (pid == 0) {
    launch(context);
    _exit(127);
  }
  const int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace pipeline::core
