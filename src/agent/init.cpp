#include "agent/init.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/waits.hpp"

namespace pipeline::agent {
namespace {

[[noreturn]] void become_command(char** command, const sigset_t& mask) {
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(command[0], command);
  const int error = errno;
  // orchestrators/containers/container_end.cpp searches the output for this text.
  fprintf(stderr, "pipe-init: %s: %s\n", command[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

}  // namespace

int run_init(char** command) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t caught, before;
  sigemptyset(&caught);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    sigaddset(&caught, signal);
  sigprocmask(SIG_BLOCK, &caught, &before);
  const pid_t pid = fork();
  if (pid < 0) return 125;
  if (pid == 0) become_command(command, before);
  int code = -1;
  for (bool is_stopping = false;;) {
    int signal = 0;
    sigwait(&caught, &signal);
    if (signal == SIGTERM) {
      is_stopping = true;
      signal_descendants(SIGTERM, {});
    } else if (signal != SIGCHLD && code < 0) {
      kill(pid, signal);
    }
    int status = 0;
    pid_t child = 0;
    while ((child = waitpid(-1, &status, WNOHANG)) > 0)
      if (child == pid) code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    const bool has_others = child == 0;
    if (code >= 0 && !(is_stopping && has_others)) return code;
  }
}

}  // namespace pipeline::agent
