#include "orchestrators/local/guardian.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace pipeline::local {
namespace {

/// Runs in a forked process without exec, so only calls that are safe after a fork in a program with threads: no allocation.
[[noreturn]] void guard(int pipe) {
  constexpr int most = 4096;
  static pid_t groups[most];
  int count = 0;
  prctl(PR_SET_NAME, "pipe-guardian");
  setsid();  // Ctrl-C at the terminal is the driver's to handle
  for (int signal : {SIGTERM, SIGHUP, SIGINT, SIGPIPE}) ::signal(signal, SIG_IGN);
  dup2(pipe, 0);
  close_range(1, ~0U, 0);
  for (pid_t message;;) {
    auto got = read(0, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof message) break;
    if (message > 0 && count < most) groups[count++] = message;
    for (int i = 0; message < 0 && i < count; ++i)
      if (groups[i] == -message) groups[i] = groups[--count];
  }
  for (int i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

}  // namespace

void Guardian::start() {
  started_ = true;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) guard(ends[0]);
  close(ends[0]);
  if (pid_ < 0) close(ends[1]);
  else pipe_ = ends[1];
}

void Guardian::tell(pid_t group) {
  if (pipe_ < 0) return;
  while (write(pipe_, &group, sizeof group) < 0 && errno == EINTR) {
  }
}

void Guardian::watch(pid_t group) {
  if (!started_) start();
  tell(group);
}

void Guardian::forget(pid_t group) { tell(-group); }

Guardian::~Guardian() {
  if (pipe_ < 0) return;
  close(pipe_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace pipeline::local
