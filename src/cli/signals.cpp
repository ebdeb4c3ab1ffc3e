#include "cli/signals.hpp"

#include <unistd.h>

#include <csignal>

#include "core/error.hpp"

namespace pipeline::cli {

StopOnSignals::StopOnSignals(asio::io_context& loop, core::CancelSource& cancel,
                             std::function<void(std::string_view)> say)
    : signals_(loop, SIGINT, SIGTERM), cancel_(cancel), say_(std::move(say)) {
  struct sigaction hang_up {};
  if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler == SIG_DFL)
    signals_.add(SIGHUP);  // nohup ignores it, and so does a driver without a terminal.
  wait();
}

StopOnSignals::~StopOnSignals() {
  // Without the set the signals have their defaults, which end the process: none may come between.
  sigset_t late, before;
  sigemptyset(&late);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&late, number);
  pthread_sigmask(SIG_BLOCK, &late, &before);
  boost::system::error_code ignored;
  signals_.clear(ignored);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StopOnSignals::wait() {
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    switch (cancel_.level()) {
      case core::StopLevel::none:
        say_("stopping gracefully; press Ctrl-C again to stop at once");
        cancel_.stop(core::StopLevel::graceful);
        break;
      case core::StopLevel::graceful:
        say_("stopping at once");
        cancel_.stop(core::StopLevel::immediate);
        break;
      case core::StopLevel::immediate:
        say_("gave up; `pipe clean --containers` removes what may be left");
        ::_exit(static_cast<int>(core::ExitCode::interrupted));
    }
    wait();
  });
}

}  // namespace pipeline::cli
