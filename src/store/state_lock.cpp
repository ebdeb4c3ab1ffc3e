#include "store/state_lock.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace pipeline::store {
namespace {

namespace fs = std::filesystem;

// Numbers of file systems (f_type of statfs(2)) that linux/magic.h does not have everywhere.
constexpr long xfs = 0x58465342, zfs = 0x2fc12fc1, bcachefs = 0xca451a4e, jfs = 0x3153464a;
constexpr long exfat = 0x2011bab0, ntfs3 = 0x7366746e, ubifs = 0x24051905;
constexpr long local[] = {EXT4_SUPER_MAGIC,
                          xfs,
                          BTRFS_SUPER_MAGIC,
                          TMPFS_MAGIC,
                          RAMFS_MAGIC,
                          zfs,
                          OVERLAYFS_SUPER_MAGIC,
                          F2FS_SUPER_MAGIC,
                          bcachefs,
                          jfs,
                          REISERFS_SUPER_MAGIC,
                          MSDOS_SUPER_MAGIC,
                          exfat,
                          ntfs3,
                          ubifs,
                          NILFS_SUPER_MAGIC,
                          ECRYPTFS_SUPER_MAGIC};

/// Returns the byte that stands for a name.
std::int64_t byte_of(const std::string& name) {
  std::int64_t byte;
  std::memcpy(&byte, core::sha256(name).bytes.data(), sizeof byte);
  return 1 + (byte & 0x3fff'ffff'ffff'ffff);  // Positive, and not the byte of `artifacts`.
}

struct flock range(std::int64_t byte, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return range;
}

/// Gives the file to the users who may write into the folder: a process that can read a file can
/// lock it.
void keep_to_writers(int file, const struct stat& status, const fs::path& state) {
  struct stat folder {};
  if (status.st_uid != ::geteuid() || ::stat(state.c_str(), &folder) != 0) return;
  mode_t wanted = S_IRUSR | S_IWUSR;
  if (folder.st_mode & S_IWGRP) wanted |= S_IRGRP | S_IWGRP;
  if (folder.st_mode & S_IWOTH) wanted |= S_IROTH | S_IWOTH;
  if ((status.st_mode & 07777) != wanted) ::fchmod(file, wanted);
}

core::Descriptor open_locks(const fs::path& state, int mode) {
  const auto path = state / "locks";
  core::Descriptor file(::open(path.c_str(), mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status {};
  if ((!file && errno == ELOOP) ||
      (file && ::fstat(file.get(), &status) == 0 && !S_ISREG(status.st_mode)))
    throw core::EnvironmentError(path.string() + " is not a plain file",
                                 {"another user may have changed the state folder: look at it"});
  if (file && (mode & O_CREAT)) keep_to_writers(file.get(), status, state);
  return file;
}

}  // namespace

bool is_local_file_system(long type) { return std::ranges::find(local, type) != std::end(local); }

bool is_local_file_system(const fs::path& folder) {
  struct statfs status {};
  return ::statfs(folder.c_str(), &status) == 0 && is_local_file_system(status.f_type);
}

std::int64_t StateLock::driver_of(const std::string& run) { return byte_of(run); }

std::optional<StateLock> StateLock::try_take(const fs::path& state, std::int64_t byte, Kind kind) {
  auto file = open_locks(state, O_RDWR | O_CREAT);
  auto wanted = range(byte, kind == Kind::shared ? F_RDLCK : F_WRLCK);
  if (file && ::fcntl(file.get(), F_OFD_SETLK, &wanted) != 0) {
    if (errno == EAGAIN || errno == EACCES) return std::nullopt;
    file = core::Descriptor();
  }
  return StateLock(std::move(file));
}

StateLock StateLock::take(const fs::path& state, std::int64_t byte, Kind kind) {
  auto file = open_locks(state, O_RDWR | O_CREAT);
  auto wanted = range(byte, kind == Kind::shared ? F_RDLCK : F_WRLCK);
  while (file && ::fcntl(file.get(), F_OFD_SETLKW, &wanted) != 0)
    if (errno != EINTR) file = core::Descriptor();
  return StateLock(std::move(file));
}

StateLock StateLock::keep_artifacts(const fs::path& state, const std::function<void()>& on_wait) {
  if (auto lock = try_take(state, artifacts, Kind::shared)) return std::move(*lock);
  if (on_wait) on_wait();
  return take(state, artifacts, Kind::shared);
}

std::optional<StateLock> StateLock::hold_artifacts(const fs::path& state) {
  return try_take(state, artifacts, Kind::exclusive);
}

bool StateLock::is_held(const fs::path& state, std::int64_t byte) {
  const auto file = open_locks(state, O_RDONLY);
  auto seen = range(byte, F_WRLCK);
  return file && ::fcntl(file.get(), F_OFD_GETLK, &seen) == 0 && seen.l_type != F_UNLCK;
}

bool StateLock::is_hidden(const fs::path& state) {
  return !open_locks(state, O_RDONLY) && errno == EACCES;
}

bool KeyLocks::try_take(const std::string& key) {
  if (!taken_.insert(key).second) return false;
  if (!file_) file_ = open_locks(state_, O_RDWR | O_CREAT);
  auto wanted = range(byte_of("key " + key), F_WRLCK);
  if (!file_ || ::fcntl(file_.get(), F_OFD_SETLK, &wanted) == 0 ||
      (errno != EAGAIN && errno != EACCES))
    return true;
  taken_.erase(key);
  return false;
}

void KeyLocks::release(const std::string& key) {
  taken_.erase(key);
  auto freed = range(byte_of("key " + key), F_UNLCK);
  if (file_) ::fcntl(file_.get(), F_OFD_SETLK, &freed);
}

Heartbeat::Heartbeat(fs::path file, std::chrono::milliseconds every) : file_(std::move(file)) {
  core::make_folders(file_.parent_path());
  core::write_file_atomically(file_, "");
  thread_ = std::jthread([this, every](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, every, [&] { return stop.stop_requested(); }))
      if (::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0) != 0)
        core::log::info("cannot write the heartbeat " + file_.string());
  });
}

Heartbeat::~Heartbeat() {
  thread_.request_stop();
  thread_.join();
  ::unlink(file_.c_str());
}

bool Heartbeat::is_fresh(const fs::path& file) {
  // The file is opened because NFS asks its server for the file's time only then.
  const core::Descriptor beat(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat last {};
  if (!beat || ::fstat(beat.get(), &last) != 0 || !S_ISREG(last.st_mode)) return false;
  try {
    const core::TemporaryFolder probe(file.parent_path(), ".now-");
    struct stat now {};
    if (::stat(probe.path().c_str(), &now) != 0) return false;
    return now.st_mtim.tv_sec - last.st_mtim.tv_sec <= fresh.count();
  } catch (const core::EnvironmentError&) {
    return false;
  }
}

}  // namespace pipeline::store
