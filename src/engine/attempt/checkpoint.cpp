#include "engine/attempt/checkpoint.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "core/error.hpp"
#include "core/log.hpp"
#include "store/private_folder.hpp"

namespace pipeline::engine {
namespace {

/// Returns false if another process has replaced or removed the folder since it was opened.
bool is_still_at(const std::filesystem::path& folder, int descriptor) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(folder.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

std::shared_ptr<Checkpoint> Checkpoint::open(const std::filesystem::path& state,
                                             const std::string& key) {
  auto folder = state / checkpoints_folder / key;
  for (;;) {
    core::make_folders(folder);
    store::keep_from_others(folder.parent_path());
    core::Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock && errno == ENOENT) continue;
    if (!lock) throw core::system_error("cannot open " + folder.string(), errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      if (errno == EINTR) continue;
      // Network file systems cannot lock folders; the folder is used all the same.
      if (errno != EBADF && errno != ENOLCK && errno != EOPNOTSUPP && errno != EINVAL)
        throw core::system_error("cannot lock " + folder.string(), errno);
    }
    if (is_still_at(folder, lock.get()))
      return std::make_shared<Checkpoint>(std::move(folder), std::move(lock));
  }
}

void Checkpoint::replace(const std::filesystem::path& fresh) {
  core::Descriptor lock(::open(fresh.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock) throw core::system_error("cannot open " + fresh.string(), errno);
  // The folder is locked before it appears, so that no other driver takes it.
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    core::log::info("cannot lock " + fresh.string());  // Tolerated, as in open().
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
      throw core::system_error("cannot replace " + folder_.string(), errno);
    core::remove_tree(folder_);
    std::filesystem::rename(fresh, folder_);
  }
  lock_ = std::move(lock);
  core::remove_tree(fresh);
}

void Checkpoint::remove() {
  try {
    core::remove_tree(folder_);
  } catch (const core::EnvironmentError& error) {  // `pipe clean` removes the folder later.
    core::log::info(error.what());
  }
}

}  // namespace pipeline::engine
