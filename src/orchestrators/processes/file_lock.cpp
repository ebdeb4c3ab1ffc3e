#include "orchestrators/processes/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "async/sleep.hpp"
#include "core/error.hpp"

namespace pipeline::orchestrators::processes {

async::Task<core::Descriptor> take_lock(std::filesystem::path file, std::function<void()> on_wait,
                                        core::CancelSource& cancel) {
  core::Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) throw core::system_error("cannot open " + file.string(), errno);
  for (bool has_waited = false; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw core::system_error("cannot lock " + file.string(), errno);
    if (!std::exchange(has_waited, true)) on_wait();
    if (cancel.level() != core::StopLevel::none)
      throw core::EnvironmentError("stopped while waiting for another `pipe`, which has locked " +
                                   file.string());
    co_await async::sleep(std::chrono::milliseconds(50), &cancel);
  }
  co_return lock;
}

}  // namespace pipeline::orchestrators::processes
