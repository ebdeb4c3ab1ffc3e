#include "file_tree/beneath.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pipeline::file_tree {
namespace {

/// Opens the path component by component. Holds one descriptor besides the result, at any depth.
core::Descriptor open_by_components(int folder, const std::string& path, int flags) {
  core::Descriptor opened;
  for (std::size_t begin = 0;;) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto component = path.substr(begin, end - begin);
    if (component.empty() || component == "..") {
      errno = component.empty() ? ENOENT : EXDEV;
      return core::Descriptor();
    }
    const bool is_last = end == path.size();
    const int wanted = is_last ? flags : O_PATH | O_DIRECTORY;
    opened = core::Descriptor(::openat(opened ? opened.get() : folder, component.c_str(),
                                       wanted | O_NOFOLLOW | O_CLOEXEC));
    if (!opened || is_last) return opened;
    begin = end + 1;
  }
}

}  // namespace

core::Descriptor open_beneath(int folder, const std::string& path, int flags) {
  constexpr int max_tries = 100;
  const auto text = path.empty() ? std::string(".") : path;
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  // EAGAIN: a rename happened meanwhile, and the kernel cannot tell whether the path stayed inside.
  for (int tries = 0; tries < max_tries; ++tries) {
    core::Descriptor found(
        static_cast<int>(::syscall(SYS_openat2, folder, text.c_str(), &how, sizeof how)));
    // The kernel is older than 5.6, or a system call filter does not know openat2.
    const bool is_unsupported = !found && (errno == ENOSYS || errno == EPERM);
    if (is_unsupported) break;
    if (found || (errno != EAGAIN && errno != EINTR)) return found;
  }
  return open_by_components(folder, text, flags);
}

}  // namespace pipeline::file_tree
