#include "vcs/open_interrupter.hpp"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <system_error>

namespace pipeline::vcs {
namespace {

constexpr std::chrono::milliseconds first_wait{250}, pause_between{2};

/// Makes SIGURG, which is ignored by default, interrupt system calls. Returns false if the program
/// uses it for something else.
bool can_interrupt() {
  struct sigaction action {};
  if (::sigaction(SIGURG, nullptr, &action) != 0) return false;
  if ((action.sa_flags & SA_SIGINFO) ||
      (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
    return false;
  action = {};
  action.sa_handler = [](int) {};  // Without SA_RESTART.
  return ::sigaction(SIGURG, &action, nullptr) == 0;
}

}  // namespace

OpenInterrupter::OpenInterrupter() try {
  static const bool can = can_interrupt();
  if (!can) return;
  thread_ = std::jthread([thread = ::pthread_self()](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    for (auto wait = first_wait; !stopped.wait_for(lock, stop, wait, [] { return false; });
         wait = pause_between) {
      if (stop.stop_requested()) return;
      ::pthread_kill(thread, SIGURG);
    }
  });
} catch (
    const std::system_error&) {  // There are too many threads: the files are most likely plain.
}

}  // namespace pipeline::vcs
