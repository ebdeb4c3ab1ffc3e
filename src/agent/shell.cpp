#include "agent/shell.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/termination_message.hpp"

namespace pipeline::agent {
namespace {

/// Standard input, split into frames.
struct Input {
  bool has_begun = false, has_ended = false;
  bool is_complete = false;  ///< `shell_input_ends` has arrived: nothing follows `pending`.
  bool has_new_size = false;
  winsize size{};
  char pending[16384];  ///< Bytes for the command that are not written yet.
  std::size_t begin = 0, end = 0;

  bool is_empty() const { return begin == end; }
  /// Reads the available input. No bytes may be pending.
  void read_some();

 private:
  void take_head();
  unsigned char head_[8];
  unsigned head_size_ = 0;
  std::uint32_t left_ = 0;  ///< Bytes of the present frame that have not arrived.
};

void Input::take_head() {
  const auto length = std::uint32_t{head_[0]} << 24 | std::uint32_t{head_[1]} << 16 |
                      std::uint32_t{head_[2]} << 8 | std::uint32_t{head_[3]};
  if (length == shell_size && head_size_ < sizeof head_) return;  // The size follows.
  head_size_ = 0;
  if (length == shell_size) {
    size.ws_row = static_cast<unsigned short>(head_[4] << 8 | head_[5]);
    size.ws_col = static_cast<unsigned short>(head_[6] << 8 | head_[7]);
    has_new_size = true;
  } else if (length == shell_begins) {
    has_begun = true;
  } else if (length == shell_input_ends) {
    is_complete = true;
  } else {
    left_ = length;
  }
}

void Input::read_some() {
  char buffer[sizeof pending];
  const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  has_ended = count <= 0;
  begin = end = 0;
  for (ssize_t i = 0; i < count;) {
    if (left_ == 0) {
      head_[head_size_++] = static_cast<unsigned char>(buffer[i++]);
      if (head_size_ >= 4) take_head();
      continue;
    }
    const auto available = static_cast<std::uint32_t>(count - i);
    const auto taken = available < left_ ? available : left_;
    memcpy(pending + end, buffer + i, taken);
    end += taken;
    left_ -= taken;
    i += static_cast<ssize_t>(taken);
  }
}

/// The command, and this process's ends of the command's streams; -1: closed, or none.
struct Shell {
  pid_t pid = -1;
  int input = -1;   ///< A pipe or the terminal.
  int output = -1;  ///< The terminal; without one, the command has this process's streams.

  void close_input() {
    if (input >= 0) close(input);
    if (output == input) output = -1;
    input = -1;
  }
  /// Writes as much as is possible without waiting.
  void pass_on(Input& from) {
    const ssize_t count = write(input, from.pending + from.begin, from.end - from.begin);
    if (count > 0) from.begin += static_cast<std::size_t>(count);
    if (count >= 0 || errno == EAGAIN || errno == EINTR) return;
    from.begin = from.end;  // The command has closed its input.
    if (input != output) close_input();
  }
  /// Copies available output of the terminal to standard output. @return false if there is none
  bool show_output() {
    char buffer[16384];
    const ssize_t count = output >= 0 ? read(output, buffer, sizeof buffer) : -1;
    if (count < 0 && errno != EAGAIN && errno != EINTR) output = input = -1;  // Closed.
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          write(STDOUT_FILENO, buffer + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno != EINTR) break;
      if (written > 0) done += written;
    }
    return count > 0;
  }
};

/// Reaps ended children. Returns -1 while the command runs, else the command's exit code.
int reap_command(pid_t command) {
  int status = 0;
  for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
    if (child == command) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return -1;
}

/// Forwards input, output and signals until the command has ended. Returns the command's exit code.
int watch_shell(Shell& shell, int signals, Input& input) {
  for (;;) {
    const bool may_read = input.is_empty() && !input.has_ended;
    pollfd watched[] = {{may_read ? STDIN_FILENO : -1, POLLIN, 0},
                        {signals, POLLIN, 0},
                        {shell.output, POLLIN, 0},
                        {input.is_empty() ? -1 : shell.input, POLLOUT, 0}};
    if (poll(watched, 4, -1) < 0 && errno != EINTR) return 125;
    if (watched[0].revents) input.read_some();
    if (watched[0].revents && input.has_ended) {  // The user is gone.
      shell.close_input();
      kill(shell.pid, SIGHUP);
    }
    if (input.has_new_size && shell.output >= 0) ioctl(shell.output, TIOCSWINSZ, &input.size);
    input.has_new_size = false;
    if (!input.is_empty() && shell.input >= 0) shell.pass_on(input);
    if (shell.input < 0) input.begin = input.end;
    if (input.is_complete && input.is_empty() && shell.output < 0) shell.close_input();
    if (watched[2].revents) shell.show_output();
    signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) kill(shell.pid, static_cast<int>(info.ssi_signo));
    if (const int code = reap_command(shell.pid); code >= 0) {
      while (shell.show_output()) continue;
      return code;
    }
  }
}

/// Executes the command in this process. On failure, writes errno to the pipe `failure`.
/// @param terminal path of the terminal that the command gets; null: `input` is its standard input
[[noreturn]] void become_shell(char** command, int input, const char* terminal, int failure,
                               const sigset_t& mask) {
  if (terminal) {
    setsid();
    input = open(terminal, O_RDWR);  // Becomes the controlling terminal of the session.
    ioctl(input, TIOCSCTTY, 0);
    dup2(input, STDOUT_FILENO);
    dup2(input, STDERR_FILENO);
  }
  dup2(input, STDIN_FILENO);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(command[0], command);
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(127);
}

}  // namespace

int run_shell(bool has_terminal, char** command) {
  Input input;
  while (!input.has_begun && !input.has_ended) input.read_some();
  Shell shell;
  int ends[2] = {-1, -1}, failure[2];
  char terminal[64];
  if (has_terminal) {
    shell.input = shell.output = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (shell.output < 0 || grantpt(shell.output) != 0 || unlockpt(shell.output) != 0 ||
        ptsname_r(shell.output, terminal, sizeof terminal) != 0)
      return 125;
    ioctl(shell.output, TIOCSWINSZ, &input.size);
  } else {
    if (pipe2(ends, O_CLOEXEC) != 0) return 125;
    shell.input = ends[1];
  }
  if (!input.has_begun || pipe2(failure, O_CLOEXEC) != 0) return 125;
  fcntl(shell.input, F_SETFL, O_NONBLOCK);
  sigset_t caught, before;
  sigemptyset(&caught);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&caught, number);
  sigprocmask(SIG_BLOCK, &caught, &before);
  const int signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
  shell.pid = fork();
  if (signals < 0 || shell.pid < 0) return 125;
  if (shell.pid == 0)
    become_shell(command, ends[0], has_terminal ? terminal : nullptr, failure[1], before);
  signal(SIGPIPE, SIG_IGN);
  if (ends[0] >= 0) close(ends[0]);
  close(failure[1]);
  int error = 0;
  if (read(failure[0], &error, sizeof error) == sizeof error) return write_not_executed(error);
  return watch_shell(shell, signals, input);
}

}  // namespace pipeline::agent
