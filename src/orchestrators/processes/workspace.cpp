#include "orchestrators/processes/workspace.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <utility>

#include "core/empty_folder.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

/// A socket below TMPDIR must fit into the 108 bytes of sockaddr_un; Python's multiprocessing makes
/// such sockets (`pymp-xxxxxxxx/listener-xxxxxxxx`).
constexpr std::size_t max_temporary_path = 70;
constexpr std::string_view temporary_prefix = "pipe-local-";

/// Files above this size are not copied, because that takes too long. The step sees the shared,
/// read-only file itself, as it does its inputs.
constexpr off_t max_copied_bytes = 16 << 20;

/// Creates the hard link `to` of a large file; returns false for a small file, or if the file
/// system refuses the link.
bool link_large(int source, const fs::path& from, const fs::path& to) {
  struct stat info;
  if (fstat(source, &info) != 0 || info.st_size <= max_copied_bytes) return false;
  auto linked = to;
  linked += ".link";
  return link(from.c_str(), linked.c_str()) == 0 && rename(linked.c_str(), to.c_str()) == 0;
}

void copy_file(const fs::path& from, const fs::path& to, mode_t mode) {
  core::Descriptor source(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) throw core::system_error("cannot read " + from.string(), errno);
  core::Descriptor target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!target) throw core::system_error("cannot write " + to.string(), errno);
  // FICLONE shares the blocks if the file system supports that.
  if (ioctl(target.get(), FICLONE, source.get()) != 0) {
    if (link_large(source.get(), from, to)) return;
    char buffer[65536];
    bool in_kernel = true;
    for (;;) {
      ssize_t got = in_kernel
                        ? copy_file_range(source.get(), nullptr, target.get(), nullptr, 1 << 30, 0)
                        : read(source.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && in_kernel && errno != ENOSPC && errno != EDQUOT) {
        in_kernel = false;
        continue;
      }
      if (got < 0)
        throw core::system_error("cannot copy " + from.string() + " to " + to.string(), errno);
      if (got == 0) break;
      for (ssize_t done = 0; !in_kernel && done < got;) {
        auto written = write(target.get(), buffer + done, static_cast<std::size_t>(got - done));
        if (written < 0 && errno != EINTR)
          throw core::system_error("cannot write " + to.string(), errno);
        if (written > 0) done += written;
      }
    }
  }
  fchmod(target.get(), mode);
}

/// Creates a folder. Returns false if it exists already.
bool make_folder(const fs::path& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return true;
  if (errno != EEXIST) throw core::system_error("cannot make the folder " + path.string(), errno);
  return false;
}

/// Copies a folder. Files become 0444 or 0555, folders 0555.
void copy_code(const fs::path& from, const fs::path& to) {
  bool is_writable = make_folder(to, 0700);
  for (auto& entry : fs::directory_iterator(from)) {
    if (!std::exchange(is_writable, true)) chmod(to.c_str(), 0700);
    auto target = to / entry.path().filename();
    struct stat info;
    if (lstat(entry.path().c_str(), &info) != 0)
      throw core::system_error("cannot read " + entry.path().string(), errno);
    if (S_ISDIR(info.st_mode))
      copy_code(entry.path(), target);
    else if (S_ISLNK(info.st_mode))
      fs::copy_symlink(entry.path(), target);
    else
      copy_file(entry.path(), target, info.st_mode & 0111 ? 0555 : 0444);
  }
  if (is_writable) chmod(to.c_str(), 0555);
}

fs::path full_path(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

}  // namespace

const std::vector<std::string>& Workspace::folders() {
  static const std::vector<std::string> names{"code", "inputs", "tmp"};
  return names;
}

ShortFolder::ShortFolder()
    : folder_({}, std::string(temporary_prefix) + std::to_string(getpid()) + "-"),
      lock_(open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (lock_) flock(lock_.get(), LOCK_SH);
  [[maybe_unused]] static const bool is_swept = (remove_old_temporary_folders(), true);
}

ShortFolder ShortFolders::take() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  auto folder = std::move(spare_.back());
  spare_.pop_back();
  return folder;
}

void ShortFolders::give_back(ShortFolder folder) {
  if (!core::empty_folder(folder.path(), 0700)) return;
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(folder));
}

Workspace::Workspace(const AttemptSpec& attempt, ShortFolders& short_folders)
    : scratch_(full_path(attempt.scratch)), short_folders_(short_folders) {
  layout_.code = (scratch_ / "code").string();
  layout_.inputs = (scratch_ / "inputs").string();
  layout_.outputs = full_path(attempt.outputs).string();
  layout_.scratch = scratch_.string();
  if (!attempt.checkpoint.empty()) layout_.checkpoint = full_path(attempt.checkpoint).string();
  if (const auto& program = attempt.step.program)
    layout_.program = {program->program->executable.string()};
  if (attempt.step.nodes.restarts > 0)  // A restarted process finds the folders of its predecessor.
    for (const auto& before : {layout_.code, layout_.inputs}) core::remove_tree(before);
  if (attempt.code.empty())
    core::make_folders(layout_.code);
  else
    copy_code(attempt.code, layout_.code);
  const bool is_changed = make_folder(layout_.inputs, 0700) || !attempt.inputs.empty();
  if (is_changed) chmod(layout_.inputs.c_str(), 0700);
  for (auto& input : attempt.inputs)
    if (symlink(full_path(input.path).c_str(), path_of(input, layout_).c_str()) != 0)
      throw core::system_error("cannot link the input " + input.path.string(), errno);
  if (is_changed) chmod(layout_.inputs.c_str(), 0555);
  temporary_ = scratch_ / "tmp";
  if (temporary_.native().size() > max_temporary_path) {
    short_.emplace(short_folders_.take());
    temporary_ = short_->path();
  } else {
    make_folder(temporary_, 0777);
  }
}

Workspace::~Workspace() {
  if (short_) short_folders_.give_back(std::move(*short_));
}

ShortFolder make_python_folder(const fs::path& program) {
  ShortFolder folder;
  // A script instead of a link: Python finds its home by the path of its command, and pyenv's shims
  // depend on their own name.
  core::write_file_atomically(
      folder.path() / "python",
      "#!/bin/sh\nexec " + core::shell_quote(program.string()) + " \"$@\"\n");
  chmod((folder.path() / "python").c_str(), 0555);
  chmod(folder.path().c_str(), 0555);
  return folder;
}

bool is_small(const fs::path& code) {
  constexpr std::uintmax_t max_bytes = 1 << 20;
  constexpr int max_entries = 50;
  std::uintmax_t bytes = 0;
  int entries = 0;
  std::error_code error;
  for (auto& entry : fs::recursive_directory_iterator(code, error)) {
    if (++entries > max_entries || bytes > max_bytes) return false;
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  }
  return bytes <= max_bytes;
}

void remove_old_temporary_folders() {
  std::error_code error;
  for (auto& entry : fs::directory_iterator(core::temporary_folder(), error)) {
    auto name = entry.path().filename().string();
    struct stat info;
    if (!name.starts_with(temporary_prefix) || lstat(entry.path().c_str(), &info) != 0 ||
        info.st_uid != geteuid() || !S_ISDIR(info.st_mode))
      continue;
    pid_t pid = 0;
    auto digits = std::string_view(name).substr(temporary_prefix.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    // A living driver locks its folder, but only after the folder was created, so a new folder of
    // a living process is left alone. Later, only the lock counts: numbers of processes are reused.
    constexpr time_t max_new = 60;  // Seconds.
    const bool may_be_new = time(nullptr) - info.st_mtime < max_new;
    if (pid <= 0 || (may_be_new && (kill(pid, 0) == 0 || errno != ESRCH))) continue;
    const core::Descriptor folder(
        open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder && flock(folder.get(), LOCK_EX | LOCK_NB) == 0) core::remove_tree(entry.path());
  }
}

}  // namespace pipeline::orchestrators::processes
