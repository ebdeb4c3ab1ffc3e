#include "cli/signals.hpp"

#include <unistd.h>

#include <csignal>

#include "core/error.hpp"

namespace pipeline::cli {

StopOnSignals::StopOnSignals(asio::io_context& loop, core::CancelSource& cancel,
                             std::function<void(std::string_view)> say)
    : signals_(loop, SIGINT, SIGTERM, stop_at_once), cancel_(cancel), say_(std::move(say)) {
  struct sigaction hang_up {};
  if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler == SIG_DFL)
    signals_.add(SIGHUP);  // nohup ignores it, and so does a driver without a terminal.
  wait();
}

StopOnSignals::~StopOnSignals() {
  // Signals are blocked in between: without the set, their defaults would end the process.
  sigset_t late, before;
  sigemptyset(&late);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, stop_at_once}) sigaddset(&late, number);
  pthread_sigmask(SIG_BLOCK, &late, &before);
  boost::system::error_code ignored;
  signals_.clear(ignored);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, stop_at_once}) ::signal(number, SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StopOnSignals::wait() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    if (cancel_.level() == core::StopLevel::none && number != stop_at_once) {
      say_("stopping gracefully; press Ctrl-C again to stop at once");
      cancel_.stop(core::StopLevel::graceful);
    } else if (cancel_.level() != core::StopLevel::immediate) {
      say_("stopping at once");
      cancel_.stop(core::StopLevel::immediate);
    } else if (number == SIGINT) {
      say_("gave up; `pipe clean --containers` removes the remains");
      ::_exit(static_cast<int>(core::ExitCode::interrupted));
    }
    wait();
  });
}

}  // namespace pipeline::cli
