#include "core/file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/reading_stop.hpp"
#include "core/regular_file.hpp"

namespace pipeline::core {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t max_shown_path = 300;  // Bytes of a path in a message.

/// Returns the names in the open folder. @param error receives errno if they cannot be read
std::vector<std::string> names_in(int folder, int& error) {
  std::vector<std::string> names;
  // Opened again, because fdopendir() moves the offset of its descriptor, and closes it.
  Descriptor again(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = again ? ::fdopendir(again.get()) : nullptr;
  if (!entries) {
    error = errno;
    return names;
  }
  again.release();
  errno = 0;
  while (const auto* entry = ::readdir(entries)) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  error = errno;
  ::closedir(entries);
  return names;
}

/// Removes one entry below an open folder and everything in it. Uses descriptors, so that replacing
/// a folder by a link cannot redirect the removal, and no recursion: at most three descriptors are
/// open at any depth. Entries that cannot be removed stay; the others are removed.
class TreeRemoval {
 public:
  void remove(int parent, const std::string& name) {
    parent_ = parent;
    visit(parent, name);
    while (!levels_.empty() && !is_lost_) {
      if (levels_.back().rest.empty()) {
        leave();
      } else {
        const auto next = std::move(levels_.back().rest.back());
        levels_.back().rest.pop_back();
        visit(folder_.get(), next);
      }
    }
  }
  /// Returns errno of the first failure; 0 if there was none.
  int error() const { return error_; }
  /// Returns the path of the first failure below the removed entry; begins with `/`, or is empty.
  const std::string& where() const { return where_; }
  std::size_t failures() const { return failures_; }

 private:
  struct Level {
    std::string name;
    dev_t device;
    ino_t inode;
    std::vector<std::string> rest;  ///< Names that are still to be removed.
    bool keeps = false;             ///< An entry of the folder could not be removed.
  };

  void fail(const std::string& name, int error) {
    for (auto& level : levels_) level.keeps = true;
    if (failures_++ > 0) return;
    error_ = error;
    for (std::size_t i = 1; i < levels_.size(); ++i) where_ += "/" + levels_[i].name;
    if (!levels_.empty()) where_ += "/" + name;
    if (where_.size() > max_shown_path) where_ = "/.../" + name;
  }

  void visit(int parent, const std::string& name) {
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return;
    const int refused = errno;
    if (refused != EISDIR && refused != EPERM && refused != EACCES) return fail(name, refused);
    struct stat status {};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) fail(name, errno);
      return;
    }
    if (!S_ISDIR(status.st_mode)) return fail(name, refused);
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return;
    enter(parent, name, status);
  }

  void enter(int parent, const std::string& name, const struct stat& status) {
    if ((status.st_mode & S_IRWXU) != S_IRWXU) {
      // fchmodat() fails for a folder of another user, which may be accessible all the same, and
      // does not follow a link that another process has put in the folder's place.
      [[maybe_unused]] const int changed =
          ::fchmodat(parent, name.c_str(), (status.st_mode & 07777) | S_IRWXU, AT_SYMLINK_NOFOLLOW);
    }
    Descriptor folder(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat opened {};
    if (!folder || ::fstat(folder.get(), &opened) != 0) return fail(name, errno);
    int error = 0;
    auto names = names_in(folder.get(), error);
    levels_.push_back({name, opened.st_dev, opened.st_ino, std::move(names)});
    folder_ = std::move(folder);
    if (error) fail(".", error);
  }

  /// Changes from an empty folder to its parent, which must be the folder that it was entered from.
  void leave() {
    const auto done = std::move(levels_.back());
    levels_.pop_back();
    Descriptor above;
    if (!levels_.empty()) {
      above = Descriptor(::openat(folder_.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
      struct stat status {};
      const bool is_entered_from = above && ::fstat(above.get(), &status) == 0 &&
                                   status.st_dev == levels_.back().device &&
                                   status.st_ino == levels_.back().inode;
      if (!is_entered_from) {
        fail(done.name, above ? EBUSY : errno);
        is_lost_ = true;
        return;
      }
    }
    folder_ = std::move(above);
    const int parent = levels_.empty() ? parent_ : folder_.get();
    if (done.keeps || ::unlinkat(parent, done.name.c_str(), AT_REMOVEDIR) == 0) return;
    if (errno != ENOENT) fail(done.name, errno);
  }

  int parent_ = -1;
  Descriptor folder_;  ///< The folder of the last level.
  std::vector<Level> levels_;
  bool is_lost_ = false;  ///< A folder was moved meanwhile, so that its parent cannot be found.
  int error_ = 0;
  std::string where_;
  std::size_t failures_ = 0;
};

}  // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (value_ >= 0) ::close(value_);
    value_ = other.value_;
    other.value_ = -1;
  }
  return *this;
}

Descriptor open_regular_file(const fs::path& path) {
  const auto& name = path.native();
  const bool is_callers =
      name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/") || name == "/dev/stdin";
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_callers ? 0 : O_NONBLOCK)));
  struct stat status {};
  if (file ? ::fstat(file.get(), &status) != 0 : errno != ENXIO)
    throw system_error("cannot read " + path.string(), errno);
  if (S_ISDIR(status.st_mode)) throw system_error("cannot read " + path.string(), EISDIR);
  const bool is_null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  if (!S_ISREG(status.st_mode) && !is_callers && !is_null)
    throw EnvironmentError("cannot read " + path.string() +
                           ": it is a pipe, a socket or a device, and not a file");
  return file;
}

Descriptor open_untrusted_file(const fs::path& path, int folder) {
  Descriptor file(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode))) return file;
  errno = EINVAL;
  return Descriptor();
}

std::string read_file(const fs::path& path, std::size_t max_bytes) {
  const auto file = open_regular_file(path);
  struct stat status {};
  ::fstat(file.get(), &status);
  const auto refuse = [&] {
    throw EnvironmentError("cannot read " + path.string() + ": it is larger than " +
                               std::to_string(max_bytes >> 20) + " MiB",
                           {"the file is too large for its purpose: name another one"});
  };
  std::string content;
  std::size_t length = 0;
  // The size is a hint only: it is 0 for files in /proc, and other files grow while they are read.
  if (status.st_size > static_cast<off_t>(max_bytes)) refuse();
  content.resize(static_cast<std::size_t>(status.st_size) + 1);
  while (true) {
    if (length > max_bytes) refuse();
    if (length == content.size()) content.resize(std::min(content.size() * 2, max_bytes + 1));
    const ssize_t count = ::read(file.get(), content.data() + length, content.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error("cannot read " + path.string(), errno);
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  content.resize(length);
  return content;
}

std::string read_if_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  try {
    return read_file(path);
  } catch (const EnvironmentError&) {  // The file may be gone by now, as in /proc.
    if (fs::is_regular_file(path, error)) throw;
    return {};
  }
}

std::optional<std::string> read_untrusted_file(const fs::path& path, std::size_t max_bytes) {
  const auto file = open_untrusted_file(path);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || status.st_size > static_cast<off_t>(max_bytes))
    return std::nullopt;
  std::string content(max_bytes + 1, '\0');
  std::size_t length = 0;
  while (length < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + length, content.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > max_bytes) return std::nullopt;
  content.resize(length);
  return content;
}

void write_fully(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("cannot write " + path.string(), errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_to_disk(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || (::fsync(file.get()) != 0 && errno != EINVAL && errno != ENOTSUP))
    throw system_error("cannot write " + path.string() + " to the disk", errno);
}

void sync_file_system(const fs::path& folder) {
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || ::syncfs(file.get()) != 0)
    throw system_error("cannot write " + folder.string() + " to the disk", errno);
}

void lock_exclusively(int descriptor, const fs::path& path, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + timeout;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return;
    check_reading();
    if (Clock::now() >= end)
      throw EnvironmentError(path.string() + " has been locked by another process for too long",
                             {"see which one: `fuser -v " + path.string() + "`"});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void write_file_atomically(const fs::path& path, std::string_view content, Durability durability) {
  // The temporary file is beside its target, because a rename cannot cross file systems. O_EXCL
  // separates concurrent writers and skips files left by killed ones.
  static std::atomic<unsigned> counter = 0;
  std::string temporary;
  Descriptor file;
  do {
    temporary =
        path.string() + "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
    file = Descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file && errno == EEXIST);
  if (!file) throw system_error("cannot write " + path.string(), errno);
  const auto fail = [&](int error_number) {
    ::unlink(temporary.c_str());
    throw system_error("cannot write " + path.string(), error_number);
  };
  for (auto rest = content; !rest.empty();) {
    const ssize_t count = ::write(file.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  if (durability == Durability::power && ::fsync(file.get()) != 0) fail(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(errno);
  if (durability == Durability::power)
    sync_to_disk(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void write_named_file(const fs::path& path, std::string_view content) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status) || fs::is_directory(status)) return write_file_atomically(path, content);
  if (fs::is_regular_file(status)) {
    const auto target = fs::canonical(path, error);
    return write_file_atomically(error ? path : target, content);
  }
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) throw system_error("cannot write " + path.string(), errno);
  write_fully(file.get(), content, path);
}

void make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw system_error("cannot make the folder " + path.string(), error.value());
  if (!fs::is_directory(path, error))
    throw system_error("cannot make the folder " + path.string(), ENOTDIR);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  const Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  int error = 0;
  std::vector<fs::path> entries;
  if (open)
    for (const auto& name : names_in(open.get(), error)) entries.push_back(folder / name);
  return entries;
}

void remove_tree(const fs::path& path) {
  auto whole = path;
  if (!whole.has_filename()) whole = whole.parent_path();
  const auto parent_path = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  const Descriptor parent(::open(parent_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) {
    if (errno == ENOENT) return;
    throw system_error("cannot remove " + path.string(), errno);
  }
  TreeRemoval removal;
  removal.remove(parent.get(), whole.filename().string());
  if (removal.failures() == 0) return;
  auto what = "cannot remove " + path.string() + removal.where();
  if (const auto more = removal.failures() - 1)
    what += " and " + std::to_string(more) + " more there";
  throw system_error(what, removal.error());
}

fs::path temporary_folder() {
  std::error_code error;
  auto folder = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : folder;
}

TemporaryFolder::TemporaryFolder(const fs::path& parent, std::string_view prefix) {
  const auto base = parent.empty() ? temporary_folder() : parent;
  std::string name = (base / (std::string(prefix) + "XXXXXX")).string();
  if (!::mkdtemp(name.data()))
    throw system_error("cannot make a temporary folder in " + base.string(), errno);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  try {
    remove_tree(path_);
  } catch (const EnvironmentError&) {
    // Files that cannot be removed, such as those of another user, stay; a destructor cannot report
    // them.
  }
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

fs::path TemporaryFolder::release() {
  auto path = std::move(path_);
  path_.clear();
  return path;
}

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // Another process has set the shared terminal to non-blocking.
      pollfd waiting{descriptor, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return errno == EPIPE ? 0 : errno;
    }
  }
  return 0;
}

}  // namespace pipeline::core
