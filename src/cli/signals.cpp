#include "cli/signals.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/reading_stop.hpp"

namespace pipeline::cli {
namespace {

void ignore(int) {}

/// The number of SIGINTs since the event loop last handled a signal.
volatile std::sig_atomic_t pending_interrupts = 0;
/// Asio's handler of SIGINT, which wakes the event loop.
void (*volatile wake_loop)(int) = ignore;

/// Ends the process. Called by a signal handler.
[[noreturn]] void give_up() {
  pollfd errors{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&errors, 1, 0) > 0)
    core::write_all(STDERR_FILENO, "gave up; `pipe clean --containers` removes what may be left\n");
  ::_exit(static_cast<int>(core::ExitCode::interrupted));
}

/// Handles SIGINT. A stuck event loop handles no signals, so the second unhandled SIGINT stops the
/// loops that call core::check_reading(), and the third ends the process.
void on_interrupt(int number) {
  const int error = errno;
  pending_interrupts = pending_interrupts + 1;
  if (pending_interrupts > 1) core::stop_reading();
  if (pending_interrupts > 2) give_up();
  wake_loop(number);
  errno = error;
}

/// Makes on_interrupt() the handler of SIGINT, and returns the earlier handler.
void (*handle_interrupt())(int) {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, &before);
  return before.sa_handler;
}

}  // namespace

StopOnSignals::StopOnSignals(asio::io_context& loop, core::CancelSource& cancel,
                             std::function<void(std::string_view)> say)
    : signals_(loop, SIGINT, SIGTERM, stop_at_once), cancel_(cancel), say_(std::move(say)) {
  struct sigaction hang_up {};
  if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler == SIG_DFL)
    signals_.add(SIGHUP);  // Under nohup, or without a terminal, SIGHUP stays ignored.
  pending_interrupts = 0;
  core::permit_reading();
  if (const auto before = handle_interrupt(); before != on_interrupt) wake_loop = before;
  await_signal();
}

StopOnSignals::~StopOnSignals() {
  // Signals are blocked while their handlers change: the default handlers would end the process.
  sigset_t late, before;
  sigemptyset(&late);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, stop_at_once}) sigaddset(&late, number);
  pthread_sigmask(SIG_BLOCK, &late, &before);
  boost::system::error_code ignored;
  signals_.clear(ignored);
  for (const int number : {SIGTERM, SIGHUP, stop_at_once}) ::signal(number, SIG_IGN);
  wake_loop = ignore;
  handle_interrupt();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StopOnSignals::await_signal() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    pending_interrupts = 0;
    if (cancel_.level() == core::StopLevel::none && number != stop_at_once) {
      say_("stopping gracefully; press Ctrl-C again to stop at once");
      cancel_.stop(core::StopLevel::graceful);
    } else if (cancel_.level() != core::StopLevel::immediate) {
      say_("stopping at once");
      core::stop_reading();
      cancel_.stop(core::StopLevel::immediate);
    } else if (number == SIGINT) {
      give_up();
    }
    await_signal();
  });
}

}  // namespace pipeline::cli
