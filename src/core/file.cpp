#include "core/file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"

namespace pipeline::core {

namespace fs = std::filesystem;

namespace {

/// Removes one entry below the open folder `parent`; with descriptors, so that nobody can lead it
/// elsewhere by swapping a folder for a link.
int remove_below(int parent, const char* name);

int empty_folder(int folder) {
  std::vector<std::string> names;
  const int copy = ::dup(folder);
  if (copy < 0) return errno;
  std::error_code error;
  // /proc/self/fd keeps to the folder that is open, whatever its path has become.
  fs::directory_iterator entries("/proc/self/fd/" + std::to_string(copy), error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error))
    names.push_back(entries->path().filename().string());
  ::close(copy);
  if (error) return error.value();
  for (const auto& name : names) {
    if (const int failure = remove_below(folder, name.c_str())) return failure;
  }
  return 0;
}

int remove_below(int parent, const char* name) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM && errno != EACCES) return errno;
  const int refused = errno;
  struct stat status {};
  if (::fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? 0 : errno;
  if (!S_ISDIR(status.st_mode)) return refused;
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
  if ((status.st_mode & S_IRWXU) != S_IRWXU)
    ::fchmodat(parent, name, (status.st_mode & 07777) | S_IRWXU, 0);
  const Descriptor folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return errno;
  if (const int failure = empty_folder(folder.get())) return failure;
  return ::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

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

std::string read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    throw system_error("cannot read " + path.string(), errno);
  if (S_ISDIR(status.st_mode)) throw system_error("cannot read " + path.string(), EISDIR);
  std::string content;
  std::size_t length = 0;
  // The size is a hint only: files in /proc say 0, others grow while they are read.
  content.resize(static_cast<std::size_t>(status.st_size) + 1);
  while (true) {
    if (length == content.size()) content.resize(content.size() * 2);
    const ssize_t count = ::read(file.get(), content.data() + length, content.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error("cannot read " + path.string(), errno);
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  content.resize(length);
  return content;
}

std::optional<std::string> read_untrusted_file(const fs::path& path, std::size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > static_cast<off_t>(most))
    return std::nullopt;
  std::string content(most + 1, '\0');
  std::size_t length = 0;
  while (length < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + length, content.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > most) return std::nullopt;
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

void write_file_atomically(const fs::path& path, std::string_view content, Durability durability) {
  // Beside its target, for a rename crosses no file system. O_EXCL keeps two writers apart, and
  // passes over what a killed one has left.
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
  if (durability == Durability::power) {
    const auto parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (const Descriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); folder)
      ::fsync(folder.get());
  }
}

void make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw system_error("cannot make the folder " + path.string(), error.value());
  if (!fs::is_directory(path, error))
    throw system_error("cannot make the folder " + path.string(), ENOTDIR);
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
  if (const int failure = remove_below(parent.get(), whole.filename().c_str()))
    throw system_error("cannot remove " + path.string(), failure);
}

TemporaryFolder::TemporaryFolder(const fs::path& parent, std::string_view prefix) {
  std::error_code error;
  const auto base = parent.empty() ? fs::temp_directory_path(error) : parent;
  std::string name =
      ((error ? fs::path("/tmp") : base) / (std::string(prefix) + "XXXXXX")).string();
  if (!::mkdtemp(name.data()))
    throw system_error("cannot make a temporary folder in " + base.string(), errno);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  try {
    remove_tree(path_);
  } catch (const EnvironmentError&) {
    // What cannot be removed, such as files of another user, is left; a destructor has nobody to
    // tell.
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
    } else if (errno == EAGAIN) {  // Someone else has set the shared terminal to non-blocking.
      pollfd waiting{descriptor, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return errno == EPIPE ? 0 : errno;
    }
  }
  return 0;
}

}  // namespace pipeline::core
