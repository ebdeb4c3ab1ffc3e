// A library for LD_PRELOAD that kills a program at its N-th change below a folder, or lets changes
// fail from there on. Its variables:
//
// CHAOS_PROGRAM  the path of the program; its children are left alone
// CHAOS_FOLDER   changes below this folder are counted
// CHAOS_LOG      a file that gets a line for each change: number, kind, path
// CHAOS_AT       the number of the change at which something happens; 0: nothing happens
// CHAOS_DO       kill: the program is killed before the change; killed: after the change;
//                torn: after half of it; full: no space; quota: EDQUOT; broken: EIO;
//                readonly: EROFS
// CHAOS_FOR      how many changes fail from there on; 0: all; unset: one
// CHAOS_SYNCED   a folder that gets what was synced: the content of each synced file and the names
//                in each synced folder, in files that are named by inode numbers
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum class Deed { none, kill, killed, torn, full, quota, broken, readonly };

struct Plan {
  pid_t process = 0;  // 0 if this process does not run CHAOS_PROGRAM
  std::string folder, synced;
  int log = -1;
  long at = 0, count = 1;
  Deed deed = Deed::none;
  std::atomic<long> done = 0;
};

/// Returns a variable, and unsets it, so that children do not have it.
std::string take(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value ? value : "";
  ::unsetenv(name);
  return text;
}

Plan& plan() {
  static Plan* const made = [] {
    auto* own = new Plan;
    char program[PATH_MAX];
    const auto length = ::readlink("/proc/self/exe", program, sizeof program);
    const auto wanted = take("CHAOS_PROGRAM"), log = take("CHAOS_LOG"), at = take("CHAOS_AT");
    const auto deed = take("CHAOS_DO"), count = take("CHAOS_FOR");
    own->folder = take("CHAOS_FOLDER");
    own->synced = take("CHAOS_SYNCED");
    if (length <= 0 || std::string_view(program, static_cast<std::size_t>(length)) != wanted)
      return own;
    if (!log.empty())
      own->log = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, log.c_str(),
                                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    own->at = std::atol(at.c_str());
    if (!count.empty()) own->count = std::atol(count.c_str());
    constexpr const char* names[] = {"",     "kill",  "killed", "torn",
                                     "full", "quota", "broken", "readonly"};
    for (std::size_t i = 0; i < std::size(names); ++i)
      if (deed == names[i]) own->deed = static_cast<Deed>(i);
    own->process = ::getpid();
    return own;
  }();
  return *made;
}
__attribute__((constructor)) void begin() { plan(); }

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
// The C library's function of a name that is defined again below.
#define REAL(name) real<decltype(::name)>(#name)

void die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

std::string path_of(int descriptor) {
  char path[PATH_MAX];
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const auto length = ::readlink(link.c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

std::string path_of(int folder, const char* name) {
  if (!name) return "";
  if (*name == '/') return name;
  char working_folder[PATH_MAX];
  auto above = folder == AT_FDCWD
                   ? (::getcwd(working_folder, sizeof working_folder) ? working_folder : "")
                   : path_of(folder);
  return above + "/" + name;
}

/// Whether a change needs space on the disk, because it makes or grows something.
enum class Wants { space, nothing };

/// A change of the disk. The constructor counts it and decides what happens; the destructor kills
/// the program after the change, if that is asked for.
class Change {
 public:
  Change(const char* what, const std::string& path, Wants wants = Wants::space) {
    auto& own = plan();
    if (own.process == 0 || own.process != ::getpid() || !path.starts_with(own.folder)) return;
    const auto number = ++own.done;
    if (own.log >= 0) {
      const auto line = std::to_string(number) + " " + what + " " + path + "\n";
      ::syscall(SYS_write, own.log, line.data(), line.size());
    }
    const bool fails =
        own.at > 0 && number >= own.at && (own.count == 0 || number < own.at + own.count);
    if (!fails) return;
    switch (own.deed) {
      case Deed::kill: die(); break;
      case Deed::killed: dies_after_ = true; break;
      case Deed::torn: is_torn_ = true; break;
      case Deed::full:
        if (wants == Wants::space) error_ = ENOSPC;
        break;
      case Deed::quota:
        if (wants == Wants::space) error_ = EDQUOT;
        break;
      case Deed::broken: error_ = EIO; break;
      case Deed::readonly: error_ = EROFS; break;
      case Deed::none: break;
    }
  }
  ~Change() {
    if (dies_after_ || is_torn_) die();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  bool fails() const {
    if (error_) errno = error_;
    return error_ != 0;
  }
  /// Returns how many of these bytes are written.
  std::size_t part(std::size_t bytes) const { return is_torn_ ? bytes / 2 : bytes; }
  bool is_torn() const { return is_torn_; }

 private:
  int error_ = 0;
  bool dies_after_ = false, is_torn_ = false;
};

bool changes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }
bool has_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

int open_file(const char* name, int folder, const char* path, int flags, mode_t mode) {
  const auto go = [&] {
    return static_cast<int>(::syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode));
  };
  if (!changes(flags)) return go();
  const Change change(name, path_of(folder, path),
                      (flags & (O_CREAT | O_TMPFILE)) ? Wants::space : Wants::nothing);
  return change.fails() ? -1 : go();
}

FILE* open_stream(const char* path, const char* mode) {
  const auto go = [&] { return REAL(fopen64)(path, mode); };
  if (!std::strpbrk(mode, "wa+")) return go();
  const Change change("fopen", path_of(AT_FDCWD, path));
  return change.fails() ? nullptr : go();
}

template <class Go>
auto counted_change(const char* what, const std::string& path, Wants wants, Go go) {
  const Change change(what, path, wants);
  return change.fails() ? -1 : go();
}

template <class Go>
ssize_t counted_write(const char* what, int descriptor, std::size_t bytes, Go go) {
  const Change change(what, path_of(descriptor));
  return change.fails() ? -1 : go(change.part(bytes));
}

mode_t mode_argument(int flags, va_list arguments) {
  return has_mode(flags) ? va_arg(arguments, mode_t) : 0;
}

/// Returns the file in CHAOS_SYNCED for an inode; empty if nothing is kept.
std::string kept_content(const struct stat& status) {
  const auto& own = plan();
  if (own.process != ::getpid() || own.synced.empty()) return "";
  return own.synced + "/" + std::to_string(status.st_ino);
}

int write_new(const std::string& path) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(),
                                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
}

/// Copies the content of a synced file, or the names in a synced folder, to CHAOS_SYNCED.
void keep_content(int descriptor) {
  static std::mutex one_at_a_time;
  struct stat status;
  const auto path = path_of(descriptor);
  if (!path.starts_with(plan().folder) || ::fstat(descriptor, &status) != 0) return;
  const auto to = kept_content(status);
  if (to.empty()) return;
  const std::lock_guard lock(one_at_a_time);
  const int file = write_new(to + ".new");
  if (S_ISDIR(status.st_mode)) {
    DIR* const folder = ::opendir(path.c_str());
    while (const auto* entry = folder ? ::readdir(folder) : nullptr) {
      const auto line = std::string(entry->d_name) + "\n";
      ::syscall(SYS_write, file, line.data(), line.size());
    }
    if (folder) ::closedir(folder);
  } else {
    off_t offset = 0;
    const auto link = "/proc/self/fd/" + std::to_string(descriptor);
    const int from =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, link.c_str(), O_RDONLY | O_CLOEXEC, 0));
    while (::syscall(SYS_sendfile, file, from, &offset, 1 << 20) > 0) {
    }
    ::close(from);
  }
  ::close(file);
  ::syscall(SYS_rename, (to + ".new").c_str(), to.c_str());
}

/// Forgets the content of a removed or replaced file, whose inode number may be used again.
void forget_content(int folder, const char* path) {
  struct stat status;
  if (plan().synced.empty() || ::fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISDIR(status.st_mode) && status.st_nlink > 1) return;
  if (const auto kept = kept_content(status); !kept.empty()) ::syscall(SYS_unlink, kept.c_str());
}

int counted_sync(int descriptor, long call) {
  return counted_change("sync", path_of(descriptor), Wants::space, [&] {
    const int result = static_cast<int>(::syscall(call, descriptor));
    if (result == 0) keep_content(descriptor);
    return result;
  });
}

}  // namespace

#define WITH_MODE(flags, mode)                       \
  va_list arguments;                                 \
  va_start(arguments, flags);                        \
  const auto mode = mode_argument(flags, arguments); \
  va_end(arguments)

extern "C" {

int open(const char* path, int flags, ...) {
  WITH_MODE(flags, mode);
  return open_file("open", AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  WITH_MODE(flags, mode);
  return open_file("open", AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  WITH_MODE(flags, mode);
  return open_file("open", folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  WITH_MODE(flags, mode);
  return open_file("open", folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_stream(path, mode); }

ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  return counted_write("write", descriptor, count, [&](std::size_t part) {
    return static_cast<ssize_t>(::syscall(SYS_write, descriptor, bytes, part));
  });
}
ssize_t writev(int descriptor, const struct iovec* pieces, int count) {
  return counted_change("writev", path_of(descriptor), Wants::space,
                        [&] { return REAL(writev)(descriptor, pieces, count); });
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset) {
  return counted_write("pwrite", descriptor, count, [&](std::size_t part) {
    return static_cast<ssize_t>(::syscall(SYS_pwrite64, descriptor, bytes, part, offset));
  });
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t count, off64_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}
std::size_t fwrite(const void* bytes, std::size_t size, std::size_t count, FILE* stream) {
  const Change change("fwrite", path_of(::fileno(stream)));
  if (change.fails()) return 0;
  const auto written = REAL(fwrite)(bytes, size, change.is_torn() ? count / 2 : count, stream);
  if (change.is_torn()) std::fflush(stream);
  return written;
}
ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset,
                        std::size_t count, unsigned flags) {
  return counted_write("copy_file_range", to, count, [&](std::size_t part) {
    return REAL(copy_file_range)(from, from_offset, to, to_offset, part, flags);
  });
}
ssize_t sendfile(int to, int from, off_t* offset, std::size_t count) {
  return counted_write("sendfile", to, count, [&](std::size_t part) {
    return static_cast<ssize_t>(::syscall(SYS_sendfile, to, from, offset, part));
  });
}
int ioctl(int descriptor, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const auto go = [&] {
    return static_cast<int>(::syscall(SYS_ioctl, descriptor, request, argument));
  };
  if (request != FICLONE) return go();
  return counted_change("clone", path_of(descriptor), Wants::space, go);
}

int ftruncate(int descriptor, off_t size) noexcept {
  return counted_change("truncate", path_of(descriptor), Wants::space, [&] {
    return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
  });
}
int ftruncate64(int descriptor, off64_t size) noexcept { return ftruncate(descriptor, size); }
int fsync(int descriptor) { return counted_sync(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return counted_sync(descriptor, SYS_fdatasync); }

int rename(const char* from, const char* to) noexcept {
  return counted_change("rename", path_of(AT_FDCWD, to), Wants::space, [&] {
    forget_content(AT_FDCWD, to);
    return REAL(rename)(from, to);
  });
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return counted_change("rename", path_of(to_folder, to), Wants::space, [&] {
    if (!flags) forget_content(to_folder, to);
    return REAL(renameat2)(from_folder, from, to_folder, to, flags);
  });
}
int link(const char* from, const char* to) noexcept {
  return counted_change("link", path_of(AT_FDCWD, to), Wants::space,
                        [&] { return REAL(link)(from, to); });
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return counted_change("link", path_of(to_folder, to), Wants::space,
                        [&] { return REAL(linkat)(from_folder, from, to_folder, to, flags); });
}
int symlink(const char* text, const char* path) noexcept {
  return counted_change("symlink", path_of(AT_FDCWD, path), Wants::space,
                        [&] { return REAL(symlink)(text, path); });
}
int symlinkat(const char* text, int folder, const char* path) noexcept {
  return counted_change("symlink", path_of(folder, path), Wants::space,
                        [&] { return REAL(symlinkat)(text, folder, path); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  return counted_change("mkdir", path_of(AT_FDCWD, path), Wants::space,
                        [&] { return REAL(mkdir)(path, mode); });
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return counted_change("mkdir", path_of(folder, path), Wants::space,
                        [&] { return REAL(mkdirat)(folder, path, mode); });
}
char* mkdtemp(char* path) noexcept {
  const Change change("mkdir", path_of(AT_FDCWD, path));
  return change.fails() ? nullptr : REAL(mkdtemp)(path);
}

int unlink(const char* path) noexcept {
  return counted_change("unlink", path_of(AT_FDCWD, path), Wants::nothing, [&] {
    forget_content(AT_FDCWD, path);
    return REAL(unlink)(path);
  });
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return counted_change("unlink", path_of(folder, path), Wants::nothing, [&] {
    forget_content(folder, path);
    return REAL(unlinkat)(folder, path, flags);
  });
}
int rmdir(const char* path) noexcept {
  return counted_change("rmdir", path_of(AT_FDCWD, path), Wants::nothing, [&] {
    forget_content(AT_FDCWD, path);
    return REAL(rmdir)(path);
  });
}
int chmod(const char* path, mode_t mode) noexcept {
  return counted_change("chmod", path_of(AT_FDCWD, path), Wants::nothing,
                        [&] { return REAL(chmod)(path, mode); });
}
int fchmod(int descriptor, mode_t mode) noexcept {
  return counted_change("chmod", path_of(descriptor), Wants::nothing,
                        [&] { return REAL(fchmod)(descriptor, mode); });
}
int fchmodat(int folder, const char* path, mode_t mode, int flags) noexcept {
  return counted_change("chmod", path_of(folder, path), Wants::nothing,
                        [&] { return REAL(fchmodat)(folder, path, mode, flags); });
}
int utimensat(int folder, const char* path, const struct timespec times[2], int flags) noexcept {
  return counted_change("utime", path_of(folder, path), Wants::nothing,
                        [&] { return REAL(utimensat)(folder, path, times, flags); });
}

}  // extern "C"
