#include "cli/background.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cli/report_error.hpp"
#include "core/error.hpp"

namespace pipeline::cli {
namespace {

/// Replaces one of the process's standard streams.
void replace_stream(int stream, const char* path, int flags) {
  const core::Descriptor file(::open(path, flags | O_CLOEXEC | O_NOCTTY, 0644));
  if (!file || ::dup2(file.get(), stream) < 0)
    throw core::system_error(std::string("cannot open ") + path, errno);
}

/// Never returns to the caller: that would continue a C++ program's `main` a second time.
[[noreturn]] void be_driver(const Context& context, core::Descriptor terminal,
                            const std::function<core::ExitCode(Background& background)>& drive) {
  ::setsid();
  // The terminal's end does not concern it. This is a handler, because the steps would inherit
  // SIG_IGN.
  std::signal(SIGHUP, [](int) {});
  Background background(std::move(terminal));
  auto code = core::ExitCode::ok;
  try {
    code = drive(background);
  } catch (...) {
    const auto error = std::current_exception();
    code = write_error(error, context.options().json && !background.has_left());
    background.add(error_json(error));
  }
  ::_exit(static_cast<int>(code));
}

/// Returns what the driver reports, and nothing if it ends before. Passes signals on to it.
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

/// @param report the run's identifier, a line break, and the state folder
void tell_detached(const Context& context, const std::string& report, pid_t driver) {
  const auto run = report.substr(0, report.find('\n'));
  if (context.options().json)
    return context.print(nlohmann::json{{"event", "detached"},
                                        {"run", run},
                                        {"status", to_string(RunStatus::running)},
                                        {"driver", {{"process", driver}}}}
                             .dump() +
                         "\n");
  const auto state = context.state_option(report.substr(run.size() + 1));
  const auto line = [&](const char* words, const std::string& more = {}) {
    return "  " + context.options().name + " " + words + " " + run + more + state + "\n";
  };
  context.print("run " + run + " continues in the background, driven by process " +
                std::to_string(driver) + "\n" + line("attach") + line("logs", " -f") +
                line("cancel"));
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

core::ExitCode drive_in_background(
    const Context& context, const std::function<core::ExitCode(Background& background)>& drive) {
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
    be_driver(context, std::move(terminal), drive);
  }
  terminal = core::Descriptor();
  const auto report = report_of(driver, channel.get(), stops);
  if (!report.empty()) tell_detached(context, report, driver);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return report.empty() ? end_of_driver(driver) : core::ExitCode::ok;
}

}  // namespace pipeline::cli
