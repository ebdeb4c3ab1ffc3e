#include "fetch/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "blobs/file_ranges.hpp"
#include "core/error.hpp"
#include "core/free_room.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "fetch/number.hpp"

namespace pipeline::fetch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t min_part = std::uint64_t{8} << 20;
constexpr std::uint64_t max_parts = 1024;
/// Progress of a part is written after this many bytes.
constexpr std::uint64_t bytes_between_saves = std::uint64_t{256} << 10;
/// Begins the first line of the second file, `pipe parts 1 TOTAL BOOT`. Each further line has the
/// received bytes of a part.
constexpr std::string_view header = "pipe parts 1 ";
constexpr std::size_t line_size = 21;  // The largest number, and the line's end.
constexpr std::uint64_t max_progress_bytes = 64 << 10;

/// Returns a line of fixed size, so that it can be replaced in place.
std::string line_of(std::uint64_t number) {
  auto text = std::to_string(number);
  text.insert(0, line_size - 1 - text.size(), '0');
  return text + "\n";
}

core::Descriptor opened(const fs::path& path) {
  core::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) throw core::system_error("cannot write " + path.string(), errno);
  return file;
}

}  // namespace

std::string boot_id() {
  try {
    return std::string(core::trimmed(core::read_file("/proc/sys/kernel/random/boot_id")));
  } catch (const std::exception&) {
    return "unknown";
  }
}

std::uint64_t part_size_of(std::uint64_t total) {
  const auto even = (total + max_parts - 1) / max_parts;
  return std::max(min_part, (even + min_part - 1) / min_part * min_part);
}

PartFile::PartFile(fs::path path, bool is_verified)
    : path_(std::move(path)), is_verified_(is_verified), file_(opened(path_)) {}

bool PartFile::try_lock() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // Another process may have held the lock and removed the file.
  struct stat own {
  }, named{};
  if (::fstat(file_.get(), &own) == 0 && ::stat(path_.c_str(), &named) == 0 &&
      own.st_ino == named.st_ino)
    return true;
  file_ = opened(path_);
  return false;
}

void PartFile::load() {
  const auto end = ::lseek(file_.get(), 0, SEEK_END);
  size_ = end < 0 ? 0 : static_cast<std::uint64_t>(end);
  std::error_code error;
  const auto bytes = fs::file_size(progress_path(), error);
  if (error || bytes > max_progress_bytes) {
    if (!is_verified_) clear();
    return;
  }
  const auto text = core::read_file(progress_path());
  const auto lines = core::split(text, '\n');
  const auto words = core::split(lines[0], ' ');
  const auto total =
      words.size() == 5 && lines[0].starts_with(header) ? number_in(words[3]) : std::nullopt;
  const bool is_this_boot = total && words[4] == boot_id();
  if (!total || (!is_verified_ && !is_this_boot)) return clear();
  total_ = total;
  part_size_ = part_size_of(*total);
  parts_.resize((*total + part_size_ - 1) / part_size_);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto done = i + 1 < lines.size() ? number_in(lines[i + 1]) : std::nullopt;
    if (!done || *done > size_of(i) || size_ != *total) return clear();
    parts_[i].done = parts_[i].saved = *done;
  }
  header_size_ = lines[0].size() + 1;
  progress_ = opened(progress_path());
}

std::uint64_t PartFile::size_of(std::size_t part) const {
  return std::min(part_size_, *total_ - begin_of(part));
}

std::uint64_t PartFile::received() const {
  if (!is_planned()) return size_;
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part.done;
  return sum;
}

std::uint64_t PartFile::room() const { return core::free_room(path_.parent_path()); }

void PartFile::check_room(std::uint64_t bytes) const {
  if (bytes <= room()) return;
  throw core::EnvironmentError("no room for " + core::format_bytes(bytes) + " in " +
                                   path_.parent_path().string() + ", whose file system has " +
                                   core::format_bytes(room()),
                               {"`pipe clean --runs --keep 5` removes old runs"});
}

void PartFile::plan(std::uint64_t total) {
  if (total > size_) check_room(total - size_);
  const auto have = std::min(size_, total);
  total_ = total;
  part_size_ = part_size_of(total);
  parts_.assign((total + part_size_ - 1) / part_size_, {});
  for (std::size_t i = 0; i < parts_.size() && begin_of(i) < have; ++i)
    parts_[i].done = std::min(size_of(i), have - begin_of(i));
  if (parts_.size() < 2) return;  // The size of a file with one part shows its progress.
  save_plan();                    // Before the file grows: without a plan it would look complete.
  if (::ftruncate(file_.get(), static_cast<off_t>(total)) != 0)
    throw core::system_error("cannot write " + path_.string(), errno);
  size_ = total;
}

void PartFile::save_plan() {
  progress_ = opened(progress_path());
  auto text = std::string(header) + std::to_string(*total_) + " " + boot_id() + "\n";
  header_size_ = text.size();
  for (auto& part : parts_) {
    text += line_of(part.done);
    part.saved = part.done;
  }
  if (::ftruncate(progress_.get(), 0) != 0 || ::lseek(progress_.get(), 0, SEEK_SET) != 0)
    throw core::system_error("cannot write " + progress_path().string(), errno);
  core::write_fully(progress_.get(), text, progress_path());
}

void PartFile::save(std::size_t part) {
  if (!progress_) return;
  const auto line = line_of(parts_[part].done);
  if (::pwrite(progress_.get(), line.data(), line.size(),
               static_cast<off_t>(header_size_ + part * line_size)) !=
      static_cast<ssize_t>(line.size()))
    throw core::system_error("cannot write " + progress_path().string(), errno);
  parts_[part].saved = parts_[part].done;
}

void PartFile::forget_progress() {
  progress_ = core::Descriptor();
  std::error_code error;
  fs::remove(progress_path(), error);
}

void PartFile::clear() {
  total_.reset();
  parts_.clear();
  size_ = 0;
  forget_progress();
  if (::ftruncate(file_.get(), 0) != 0)
    throw core::system_error("cannot write " + path_.string(), errno);
}

void PartFile::remove() {
  std::error_code error;
  fs::remove(progress_path(), error);
  fs::remove(path_, error);
}

std::optional<std::size_t> PartFile::take() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].is_taken || parts_[i].done == size_of(i)) continue;
    parts_[i].is_taken = true;
    return i;
  }
  return std::nullopt;
}

PartFile::Range PartFile::missing(std::size_t part) const {
  return {begin_of(part) + parts_[part].done, begin_of(part) + size_of(part)};
}

void PartFile::write(std::size_t part, std::string_view bytes) {
  const auto [begin, end] = missing(part);
  bytes = bytes.substr(0, end - begin);
  if (bytes.empty()) return;
  blobs::write_at(file_.get(), begin, bytes, path_);
  auto& state = parts_[part];
  state.done += bytes.size();
  if (state.done - state.saved >= bytes_between_saves || state.done == size_of(part)) save(part);
}

void PartFile::append(std::string_view bytes) {
  blobs::write_at(file_.get(), size_, bytes, path_);
  size_ += bytes.size();
}

}  // namespace pipeline::fetch
