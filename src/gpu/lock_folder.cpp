#include "gpu/lock_folder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/process_fields.hpp"
#include "core/regular_file.hpp"

namespace pipeline::gpu {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t max_lock_file = 4 << 20;  // Every user may write into the files.
constexpr mode_t for_all = 0666, sticky_for_all = 01777;

/// Returns true for a folder in which every user can create files, but remove only their own.
bool is_for_all(const fs::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         (info.st_mode & sticky_for_all) == sticky_for_all;
}

/// Creates the folder for all users, under another name until it has its rights: a driver that is
/// killed before that leaves no folder here which only its own user can open. Sets errno.
bool make_folder_for_all(const fs::path& path) {
  auto made = (path.has_filename() ? path : path.parent_path()).string() + ".XXXXXX";
  if (!::mkdtemp(made.data())) return false;
  if (::chmod(made.c_str(), sticky_for_all) == 0 &&
      ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return true;
  const int error = errno;
  ::rmdir(made.c_str());
  errno = error;
  // File systems such as NFS cannot rename in this way.
  return error == EINVAL && ::mkdir(path.c_str(), 0700) == 0 &&
         ::chmod(path.c_str(), sticky_for_all) == 0;
}

/// Creates a file of the folder for all users, as make_folder_for_all() does. Sets errno.
core::Descriptor make_file_for_all(int folder, const std::string& name, int mode) {
  const int flags = mode | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const auto made =
      ".new-" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device()());
  core::Descriptor file(::openat(folder, made.c_str(), flags, 0600));
  if (!file) return file;
  if (::fchmod(file.get(), for_all) == 0 &&
      ::renameat2(folder, made.c_str(), folder, name.c_str(), RENAME_NOREPLACE) == 0)
    return file;
  const int error = errno;
  ::unlinkat(folder, made.c_str(), 0);
  file = core::Descriptor(error == EINVAL ? ::openat(folder, name.c_str(), flags, 0600) : -1);
  if (file)
    ::fchmod(file.get(), for_all);
  else if (error != EINVAL)
    errno = error;
  return file;
}

std::string read_all(int file) {
  std::string text;
  char buffer[16384];
  for (;;) {
    const auto got = ::pread(file, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() > max_lock_file) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void write_all(int file, const std::string& text, const fs::path& path) {
  for (std::size_t at = 0; at < text.size();) {
    const auto put = ::pwrite(file, text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw core::system_error("cannot write " + path.string(), errno);
    at += static_cast<std::size_t>(put);
  }
  if (::ftruncate(file, static_cast<off_t>(text.size())) != 0)
    throw core::system_error("cannot write " + path.string(), errno);
}

/// Returns a write lock on the whole file, for fcntl().
struct flock whole_file() {
  struct flock range {};
  range.l_type = F_WRLCK;
  return range;
}

/// Returns true if another process has one of the locks. Valid only while this driver holds the
/// mutex, because the test takes a lock for a moment.
bool is_locked(int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return true;
  ::flock(file, LOCK_UN);
  auto seen = whole_file();
  return ::fcntl(file, F_OFD_GETLK, &seen) == 0 && seen.l_type != F_UNLCK;
}

/// Replaces slashes: MIG devices of drivers before 470 are called `MIG-GPU-UUID/1/0`.
std::string file_name_of(std::string uuid) {
  std::ranges::replace(uuid, '/', '_');
  return uuid;
}

/// Returns true for a process that a signal has stopped (Ctrl-Z), which does not take the GPUs that
/// it is granted. Returns false if no process has this number here, as for a process in another PID
/// namespace.
bool is_stopped(pid_t pid) {
  const auto fields = core::process_fields(pid);
  return fields.starts_with('T') || fields.starts_with('t');
}

json to_json(const HolderInfo& holder) {
  return {{"pid", holder.pid},
          {"user", holder.user},
          {"run", holder.run},
          {"step", holder.step},
          {"since", holder.since.time_since_epoch().count()}};
}

/// Returns a text as printable characters: every user may write the files, and their content must
/// not control a terminal.
std::string printable_at(const json& object, const char* key) {
  return core::printable(object.at(key).get<std::string>());
}

HolderInfo holder_of(const json& object) {
  return {.pid = core::integer_of<pid_t>(object.at("pid")),
          .user = printable_at(object, "user"),
          .run = printable_at(object, "run"),
          .step = printable_at(object, "step"),
          .since = WallTime(
              std::chrono::milliseconds(core::integer_of<std::int64_t>(object.at("since"))))};
}

json to_json(const LockEntry& entry) {
  auto object = to_json(entry.holder);
  const auto& waiting = entry.waiting;
  object.update({{"driver", entry.driver},
                 {"number", waiting.number},
                 {"count", waiting.demand.count},
                 {"candidates", waiting.demand.candidates},
                 {"idle", waiting.demand.idle},
                 {"overtaken", waiting.overtaken},
                 {"paused", waiting.paused}});
  if (waiting.demand.each > 0) object["each"] = waiting.demand.each;
  return object;
}

LockEntry entry_of(const json& object) {
  return {
      object.at("driver"),
      {core::integer_of<std::uint64_t>(object.at("number")),
       {core::integer_of<unsigned>(object.at("count")), object.at("candidates"), object.at("idle"),
        object.contains("each") ? core::integer_of<unsigned>(object.at("each")) : 0},
       core::integer_of<unsigned>(object.at("overtaken")),
       object.at("paused")},
      holder_of(object)};
}

}  // namespace

std::pair<std::uint64_t, std::string_view> order_of(const LockEntry& entry) {
  return {entry.waiting.number, entry.driver};
}

std::string to_string(const HolderInfo& holder) {
  const std::string step_text = "step '" + holder.step + "' of run " + holder.run;
  const std::string user = holder.user.empty() ? "" : ", user " + holder.user;
  if (holder.gone)
    return "a process that " + step_text + " has left behind (its driver, pid " +
           std::to_string(holder.pid) + user + ", is dead)";
  return step_text + " (pid " + std::to_string(holder.pid) + user + ")";
}

fs::path LockFolder::default_path() {
  if (const char* own = std::getenv("PIPE_GPU_LOCKS"); own && *own) return own;
  return fs::path(is_for_all("/run/lock") ? "/run/lock" : "/tmp") / "pipe-gpus";
}

LockFolder::LockFolder(fs::path folder) : path_(std::move(folder)) {
  const std::vector<std::string> advice{
      "it has to be a folder with the mode 1777; PIPE_GPU_LOCKS names another one, the same for "
      "all who share the GPUs"};
  const auto failure = "cannot keep GPU reservations in " + path_.string();
  std::error_code unknown;
  if (fs::symlink_status(path_, unknown).type() == fs::file_type::not_found &&
      !make_folder_for_all(path_) && errno != EEXIST)
    throw core::system_error(failure, errno);
  for (int tries = 0;; ++tries) {  // Another user's driver may be creating it at this moment.
    folder_ =
        core::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const int error = errno;
    struct stat info {};
    if (folder_ && ::fstat(folder_.get(), &info) == 0 &&
        ((info.st_mode & sticky_for_all) == sticky_for_all || info.st_uid == ::geteuid()))
      break;
    if (tries == 10)
      throw core::EnvironmentError(failure + (folder_ ? ": it belongs to another user alone"
                                                      : std::string(": ") + ::strerror(error)),
                                   advice);
    ::usleep(1000);
  }
  ::flock(folder_.get(), LOCK_SH | LOCK_NB);  // systemd-tmpfiles does not clean a locked folder.
  // Read-only, because closing a file that was not writable wakes no watcher.
  mutex_ = open_file("mutex", O_RDONLY);
}

std::optional<LockFolder> LockFolder::existing() {
  const auto folder = default_path();
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return std::nullopt;
  return std::optional<LockFolder>(std::in_place, folder);
}

core::Descriptor LockFolder::open_file(const std::string& name, int mode) const {
  // Opens without O_CREAT first: in a sticky folder, another user's file can only be opened that
  // way (fs.protected_regular).
  for (int tries = 0; tries < 100; ++tries) {
    core::Descriptor file(
        ::openat(folder_.get(), name.c_str(), mode | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno == ENOENT) file = make_file_for_all(folder_.get(), name, mode);
    if (!file && (errno == EEXIST || errno == EACCES)) {
      ::usleep(100);  // Another process is creating the file at this moment.
      continue;
    }
    if (!file) break;
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1)
      throw core::EnvironmentError(
          (path_ / name).string() + " is a link or not a regular file",
          {"another user may have tampered with it: look at it, then remove it"});
    return file;
  }
  throw core::system_error("cannot open the GPU reservation " + (path_ / name).string(), errno);
}

std::optional<LockFolder::Session> LockFolder::try_enter() {
  if (::flock(mutex_.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  return Session(this);
}

LockFolder::Session::~Session() {
  if (folder_) ::flock(folder_->mutex_.get(), LOCK_UN);
}

const std::string& LockFolder::sign_in() {
  for (unsigned n = 0; !driver_; ++n) {
    const auto name = "driver-" + std::to_string(n);
    auto file = open_file(name, O_RDWR);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    token_ = name + ":" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device()());
    write_all(file.get(), token_, path_ / name);
    driver_ = std::move(file);
  }
  return token_;
}

bool LockFolder::is_alive(const std::string& driver) const {
  if (driver == token_) return true;
  const auto name = driver.substr(0, driver.find(':'));
  if (!name.starts_with("driver-") || name.find('/') != std::string::npos) return false;
  const auto file = core::open_untrusted_file(name, folder_.get());
  return file && is_locked(file.get()) && read_all(file.get()) == driver;
}

std::vector<core::Descriptor> LockFolder::Session::take_units(const std::string& name,
                                                              unsigned count, unsigned limit) {
  std::vector<core::Descriptor> taken;
  for (unsigned i = 0; i < limit && taken.size() < count; ++i) {
    auto file = folder_->open_file("limit-" + name + "-" + std::to_string(i), O_RDONLY);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) taken.push_back(std::move(file));
  }
  if (taken.size() < count) taken.clear();
  return taken;
}

std::vector<LockEntry> LockFolder::Session::queue() const {
  const auto file = folder_->open_file("queue", O_RDONLY);
  // An unreadable queue (its writer was killed while it wrote) is treated as empty: each driver
  // adds its own entries again.
  const auto list = core::parse_json(read_all(file.get()));
  std::vector<LockEntry> entries;
  std::map<std::string, bool> alive;
  if (!list.is_array()) return entries;
  for (const auto& object : list) try {
      auto entry = entry_of(object);
      const auto [known, is_new] = alive.try_emplace(entry.driver);
      if (is_new) known->second = folder_->is_alive(entry.driver);
      if (!known->second) continue;
      entry.waiting.paused |= entry.driver != folder_->token_ && is_stopped(entry.holder.pid);
      entries.push_back(std::move(entry));
    } catch (const json::exception&) {  // Written by another version of pipe.
    }
  std::ranges::sort(entries, {}, order_of);
  return entries;
}

void LockFolder::Session::put_queue(const std::vector<LockEntry>& entries) {
  auto list = json::array();
  for (const auto& entry : entries) list.push_back(to_json(entry));
  const auto text = list.dump(-1, ' ', false, json::error_handler_t::replace);
  if (read_all(folder_->open_file("queue", O_RDONLY).get()) == text) return;
  const auto file = folder_->open_file("queue", O_RDWR);
  write_all(file.get(), text, folder_->path_ / "queue");
}

bool LockFolder::Session::is_held(const std::string& uuid) const {
  const auto file = core::open_untrusted_file(file_name_of(uuid), folder_->folder_.get());
  return file && is_locked(file.get());
}

std::optional<HolderInfo> LockFolder::Session::holder(const std::string& uuid) const {
  const auto file = core::open_untrusted_file(file_name_of(uuid), folder_->folder_.get());
  if (!file || !is_locked(file.get())) return std::nullopt;
  HolderInfo holder;
  try {
    const auto object = core::parse_json(read_all(file.get()));
    holder = holder_of(object);
    holder.gone = !folder_->is_alive(object.at("driver"));
  } catch (const json::exception&) {  // The holder is unknown, but the GPU is known to be held.
    holder.step = "unknown";
    holder.run = "unknown";
  }
  return holder;
}

core::Descriptor LockFolder::Session::take(const std::string& uuid, const HolderInfo& holder) {
  if (uuid.empty() || uuid.front() == '.')
    throw core::EnvironmentError("'" + uuid + "' is not the UUID of a GPU");
  auto object = to_json(holder);
  object["driver"] = folder_->sign_in();
  const auto name = file_name_of(uuid);
  auto file = folder_->open_file(name, O_RDWR);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    throw core::EnvironmentError("GPU " + uuid + " is held already");
  write_all(file.get(), object.dump(-1, ' ', false, json::error_handler_t::replace),
            folder_->path_ / name);
  return file;
}

core::Descriptor LockFolder::Session::share(const std::string& uuid) {
  const auto name = file_name_of(uuid);
  auto file = folder_->open_file(name, O_RDWR);
  auto wanted = whole_file();
  if (::fcntl(file.get(), F_OFD_SETLK, &wanted) != 0)
    throw core::system_error("cannot lock " + (folder_->path_ / name).string(), errno);
  return file;
}

int LockFolder::watch() {
  if (!watch_) {
    watch_ = core::Descriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    const auto path = "/proc/self/fd/" + std::to_string(folder_.get());
    if (watch_ && ::inotify_add_watch(watch_.get(), path.c_str(), IN_CLOSE_WRITE) < 0)
      watch_ = core::Descriptor();
  }
  return watch_.get();
}

void LockFolder::forget_changes() {
  char buffer[4096];
  while (watch_ && ::read(watch_.get(), buffer, sizeof buffer) > 0) {
  }
}

}  // namespace pipeline::gpu
