#include "driver/growing_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "core/regular_file.hpp"

namespace pipeline::driver {

bool GrowingFile::open() {
  if (file_) return true;
  // The state folder may be somebody else's: a link there could lead to any file of the user's.
  const core::Descriptor folder(
      ::open(path_.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder) file_ = core::open_untrusted_file(path_.filename(), folder.get());
  if (file_ || errno == ENOENT) return static_cast<bool>(file_);
  throw core::EnvironmentError("cannot read the log " + path_.string() +
                               ": it is not a plain file in a folder of logs");
}

std::size_t GrowingFile::read_some(std::string& buffer) {
  if (!open()) return 0;
  for (;;) {
    const auto count = ::read(file_.get(), buffer.data(), buffer.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw core::system_error("cannot read the log " + path_.string(), errno);
  }
}

void GrowingFile::skip_to_last(std::size_t lines) {
  if (!open()) return;
  constexpr off_t max_read = 64 * 1024;  // Fewer lines are found if these are very long.
  const auto size = ::lseek(file_.get(), 0, SEEK_END);
  const auto begin = std::max<off_t>(0, size - max_read);
  std::string tail(static_cast<std::size_t>(size - begin), '\0');
  const auto count = ::pread(file_.get(), tail.data(), tail.size(), begin);
  tail.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  auto from = tail.size();
  for (std::size_t seen = 0; from > 0; --from)
    if (tail[from - 1] == '\n' && from < tail.size() && ++seen == lines) break;
  ::lseek(file_.get(), begin + static_cast<off_t>(from), SEEK_SET);
}

void GrowingFile::wait() {
  if (!changes_) changes_ = core::Descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!is_watched_ && changes_)
    is_watched_ = ::inotify_add_watch(changes_.get(), path_.c_str(), IN_MODIFY) >= 0;
  pollfd waiting{changes_.get(), POLLIN, 0};
  constexpr int max_wait_ms = 200;
  if (::poll(&waiting, 1, max_wait_ms) <= 0) return;
  char ignored[4096];
  while (::read(changes_.get(), ignored, sizeof ignored) > 0) {
  }
}

}  // namespace pipeline::driver
