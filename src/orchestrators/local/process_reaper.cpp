#include "orchestrators/local/process_reaper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace pipeline::orchestrators {
namespace {

constexpr int most = 4096;
constexpr pid_t taken = -1;  ///< By a group that has not begun.
constexpr std::size_t bytes = most * sizeof(std::atomic<pid_t>);

/// Runs in a forked process without exec, so only calls that are safe after a fork in a program
/// with threads: no allocation.
[[noreturn]] void guard(int pipe, const std::atomic<pid_t>* groups) {
  prctl(PR_SET_NAME, "pipe-guardian");
  setsid();  // Ctrl-C at the terminal is the driver's to handle
  for (int signal : {SIGTERM, SIGHUP, SIGINT, SIGPIPE}) ::signal(signal, SIG_IGN);
  dup2(pipe, 0);
  close_range(1, ~0U, 0);
  char nothing;
  while (read(0, &nothing, 1) < 0 && errno == EINTR) {
  }
  for (int i = 0; i < most; ++i)
    if (pid_t group = groups[i].load(); group > 0) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

void ProcessReaper::start() {
  started_ = true;
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return;
  groups_ = static_cast<std::atomic<pid_t>*>(shared);  // zeroes are free places
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) guard(ends[0], groups_);
  close(ends[0]);
  if (pid_ < 0)
    close(ends[1]);
  else
    pipe_ = ends[1];
}

std::atomic<pid_t>* ProcessReaper::place() {
  if (!started_) start();
  for (int i = 0; groups_ && i < most; ++i) {
    pid_t free = unused;
    if (groups_[i].compare_exchange_strong(free, taken)) return &groups_[i];
  }
  return nullptr;
}

ProcessReaper::~ProcessReaper() {
  if (pipe_ >= 0) {
    close(pipe_);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (groups_) munmap(groups_, bytes);
}

}  // namespace pipeline::orchestrators
