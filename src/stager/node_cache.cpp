#include "stager/node_cache.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/quantity.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* part_suffix = ".part";  // An object that is being downloaded.
constexpr int safe_flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

std::optional<struct stat> status_of(const core::Descriptor& file) {
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status;
}

/// Returns true if the path still names the open file.
bool is_named(const fs::path& path, const core::Descriptor& file) {
  struct stat named {};
  const auto status = status_of(file);
  return status && ::lstat(path.c_str(), &named) == 0 && named.st_ino == status->st_ino &&
         named.st_dev == status->st_dev;
}

/// Returns what changes when another process writes to the file.
std::array<std::int64_t, 4> progress_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return {static_cast<std::int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

/// Returns true if no other process uses the file. On file systems without locks, a reader of a
/// removed file may fail, and then downloads the object.
bool lock_unused(const core::Descriptor& file) {
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace

void NodeCache::note_trouble(const std::string& what, int error_number) {
  note_trouble(what + ": " + std::strerror(error_number));
}

void NodeCache::note_trouble(std::string trouble) {
  const std::scoped_lock guard(mutex_);
  trouble_ = std::move(trouble);
}

std::optional<NodeCache::Object> NodeCache::find(const std::string& name) const {
  const auto path = folder_ / name;
  Object object{core::Descriptor(::open(path.c_str(), O_RDONLY | safe_flags))};
  const auto status = status_of(object.file);
  if (!status) return std::nullopt;
  // A process that has locked the file alone has just completed it, or is about to remove it, after
  // which this one can still read it.
  ::flock(object.file.get(), LOCK_SH | LOCK_NB);
  object.bytes = static_cast<std::uint64_t>(status->st_size);
  // trim() removes the objects with the oldest times. Only a file's owner may set its time.
  ::futimens(object.file.get(), nullptr);
  return object;
}

std::optional<NodeCache::Object> NodeCache::open(const std::string& name,
                                                 const Download& download) {
  const auto path = folder_ / (name + part_suffix);
  auto seen = progress_of(path);
  for (auto heard = Clock::now();; std::this_thread::sleep_for(waits_.poll)) {
    if (auto object = find(name)) return object;
    core::Descriptor part(::open(path.c_str(), O_RDWR | O_CREAT | safe_flags, 0666));
    if (!status_of(part)) {
      note_trouble("cannot write to the node's cache", part ? EINVAL : errno);
      return std::nullopt;
    }
    if (::flock(part.get(), LOCK_EX | LOCK_NB) == 0) {
      if (!is_named(path, part)) continue;  // The process that had locked the file has just ended.
      if (auto object = find(name)) {
        ::unlink(path.c_str());
        return object;
      }
      return fill(std::move(part), name, download);
    }
    if (errno != EWOULDBLOCK) {
      note_trouble("cannot lock files in the node's cache", errno);
      return std::nullopt;
    }
    if (const auto now = progress_of(path); now != seen) {
      seen = now;
      heard = Clock::now();
    } else if (Clock::now() - heard > waits_.max_silence) {
      note_trouble("another pod's download to the node's cache makes no progress", ETIMEDOUT);
      return std::nullopt;
    }
  }
}

std::optional<NodeCache::Object> NodeCache::fill(core::Descriptor part, const std::string& name,
                                                 const Download& download) {
  const auto path = folder_ / (name + part_suffix);
  try {
    if (::ftruncate(part.get(), 0) != 0) throw core::system_error("cannot write", errno);
    download(part.get(), path);
  } catch (const TransferError&) {
    ::unlink(path.c_str());
    throw;
  } catch (const core::EnvironmentError& error) {
    note_trouble(std::string("cannot write to the node's cache: ") + error.what());
    ::unlink(path.c_str());
    part = core::Descriptor();
    trim_to(budget_ / 2);  // The pod's own volume may be on the same full disk.
    return std::nullopt;
  }
  ::fchmod(part.get(), 0444);
  Object object{std::move(part), true};
  object.bytes = static_cast<std::uint64_t>(status_of(object.file).value().st_size);
  if (::rename(path.c_str(), (folder_ / name).c_str()) != 0) {
    note_trouble("cannot keep a file in the node's cache", errno);
    ::unlink(path.c_str());
    return std::nullopt;
  }
  ::flock(object.file.get(), LOCK_SH);
  ::lseek(object.file.get(), 0, SEEK_SET);
  added_ += object.bytes;
  constexpr std::uint64_t trims_in_budget = 16;  // Trims when a sixteenth is new.
  if (added_ > budget_ / trims_in_budget) trim();
  return object;
}

void NodeCache::discard(const std::string& name, const Object& object) {
  if (is_named(folder_ / name, object.file)) ::unlink((folder_ / name).c_str());
}

void NodeCache::trim_to(std::uint64_t budget) {
  struct Entry {
    fs::path path;
    std::pair<time_t, long> used;
    std::uint64_t bytes;
  };
  added_ = 0;
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  for (const auto& path : core::entries_of(folder_)) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    entries.push_back({path,
                       {status.st_mtim.tv_sec, status.st_mtim.tv_nsec},
                       static_cast<std::uint64_t>(status.st_size)});
    total += entries.back().bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const auto& entry : entries) {
    const bool is_part = entry.path.extension() == part_suffix;
    if (total <= budget && !is_part) continue;
    const core::Descriptor file(::open(entry.path.c_str(), O_RDONLY | safe_flags));
    if (!status_of(file) || !lock_unused(file) || !is_named(entry.path, file)) continue;
    if (::unlink(entry.path.c_str()) == 0) total -= entry.bytes;
  }
}

std::string NodeCache::summary() const {
  const std::scoped_lock guard(mutex_);
  return "inputs: " + core::format_bytes(found_) + " from the node's cache, " +
         core::format_bytes(downloaded_) + " downloaded to it" +
         (trouble_.empty() ? "" : "; the rest was downloaded without it: " + trouble_);
}

}  // namespace pipeline::stager
