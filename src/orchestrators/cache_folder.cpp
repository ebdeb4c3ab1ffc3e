#include "orchestrators/cache_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/user_environment.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

/// Returns the folder for a user without HOME, such as that of a service. Other users can create
/// this folder first, and programs in it are executed, so its owner and mode are checked.
fs::path cache_without_home() {
  constexpr mode_t mine = 0700, writable_for_others = 022;
  auto folder = core::temporary_folder() / ("pipe-cache-" + std::to_string(geteuid()));
  struct stat status {};
  if ((::mkdir(folder.c_str(), mine) != 0 && errno != EEXIST) ||
      ::lstat(folder.c_str(), &status) != 0)
    throw core::system_error("cannot make the folder " + folder.string(), errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & writable_for_others) != 0)
    throw core::EnvironmentError(
        folder.string() + " is not a folder that only this user may write to",
        {"set HOME or PIPE_CACHE_DIR to a folder of this user",
         "another user may have made " + folder.string() + ": look at it, then remove it"});
  return folder;
}

}  // namespace

fs::path cache_folder() {
  if (const auto own = core::variable("PIPE_CACHE_DIR"); !own.empty()) return fs::absolute(own);
  if (const auto shared = core::variable("XDG_CACHE_HOME"); !shared.empty())
    return fs::absolute(shared) / "pipe";
  if (const auto home = core::variable("HOME"); !home.empty())
    return fs::absolute(home) / ".cache" / "pipe";
  return cache_without_home();
}

}  // namespace pipeline::orchestrators
