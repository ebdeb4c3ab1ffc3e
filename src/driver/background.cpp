#include "driver/background.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/error.hpp"

namespace pipeline::driver {
namespace {

/// Replaces one of the process's standard streams.
void replace_stream(int stream, const char* path, int flags) {
  const core::Descriptor file(::open(path, flags | O_CLOEXEC | O_NOCTTY, 0644));
  if (!file || ::dup2(file.get(), stream) < 0)
    throw core::system_error(std::string("cannot open ") + path, errno);
}

/// Runs the driver and ends the process: a return would continue a C++ program's `main` twice.
[[noreturn]] void become_driver(
    core::Descriptor terminal,
    const std::function<core::ExitCode(Background& background)>& drive) noexcept {
  ::setsid();
  // The end of the terminal must not end the driver. Steps would inherit SIG_IGN, but do
  // not inherit a handler.
  std::signal(SIGHUP, [](int) {});
  Background background(std::move(terminal));
  ::_exit(static_cast<int>(drive(background)));
}

/// Returns the text that the driver reports: the run's identifier, a line break, and the state
/// folder; nothing if the driver ends before. Passes signals on to the driver.
std::string report_of(pid_t driver, int channel, const sigset_t& stops) {
  const core::Descriptor signals(::signalfd(-1, &stops, SFD_CLOEXEC));
  if (!signals) throw core::system_error("cannot wait for signals", errno);
  std::string report;
  for (;;) {
    pollfd events[]{{channel, POLLIN, 0}, {signals.get(), POLLIN, 0}};
    if (::poll(events, 2, -1) < 0) continue;
    if (events[1].revents) {
      signalfd_siginfo signal{};
      if (::read(signals.get(), &signal, sizeof signal) == sizeof signal)
        ::kill(driver, static_cast<int>(signal.ssi_signo));
    }
    if (!events[0].revents) continue;
    char buffer[256];
    const auto count = ::read(channel, buffer, sizeof buffer);
    if (count > 0) report.append(buffer, static_cast<std::size_t>(count));
    if (count == 0) return report;
  }
}

core::ExitCode end_of_driver(pid_t driver) {
  int status = 0;
  while (::waitpid(driver, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return static_cast<core::ExitCode>(WEXITSTATUS(status));
  throw core::EnvironmentError("the driver was killed before the run began, by signal " +
                               std::to_string(WTERMSIG(status)));
}

}  // namespace

void Background::leave_terminal(const store::RunStore& store, const std::string& run) {
  log_.emplace(store, run);
  replace_stream(STDIN_FILENO, "/dev/null", O_RDONLY);
  const auto file = store.paths().log_file(run + "/driver.log");
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    replace_stream(stream, file.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  core::write_all(terminal_.get(), run + "\n" + store.folder().string());
  terminal_ = core::Descriptor();
}

std::variant<BackgroundRun, core::ExitCode> start_in_background(
    const std::function<core::ExitCode(Background& background)>& drive) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw core::system_error("cannot make a pipe", errno);
  core::Descriptor channel(ends[0]), terminal(ends[1]);
  sigset_t stops, before;
  sigemptyset(&stops);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stops, number);
  pthread_sigmask(SIG_BLOCK, &stops, &before);
  // Nothing has been opened and no thread started yet: the driver does both in its own process.
  const auto driver = ::fork();
  if (driver < 0) throw core::system_error("cannot start the driver", errno);
  if (driver == 0) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    channel = core::Descriptor();
    become_driver(std::move(terminal), drive);
  }
  terminal = core::Descriptor();
  const auto report = report_of(driver, channel.get(), stops);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (report.empty()) return end_of_driver(driver);
  const auto line_end = report.find('\n');
  return BackgroundRun{report.substr(0, line_end), report.substr(line_end + 1), driver};
}

}  // namespace pipeline::driver
