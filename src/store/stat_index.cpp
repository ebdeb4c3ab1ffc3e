#include "store/stat_index.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::store {
namespace {

constexpr std::string_view header_text = "pipe stat index 1\n";
constexpr std::int64_t one_second = 1'000'000'000;
/// Resolution of file time stamps: FAT has 2 s; clocks with nanoseconds advance with the kernel's
/// tick, every few milliseconds.
constexpr std::int64_t coarse_unit = 2 * one_second, fine_unit = one_second / 20;
/// Unused entries are dropped when they outnumber the used ones by this many.
constexpr std::size_t spare_size = 20'000;
/// Maximum size of an index that is read, bytes: that of ten million files.
constexpr std::size_t max_index_bytes = std::size_t{1} << 30;

std::int64_t nanoseconds(const struct timespec& time) {
  return time.tv_sec * one_second + time.tv_nsec;
}

template <class Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Value>
bool read(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

StatIndex::StatIndex(std::filesystem::path file, WallClock now)
    : file_(std::move(file)), now_(now) {}

core::Digest StatIndex::digest(const std::filesystem::path& file) {
  load();
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    throw core::system_error("cannot read " + file.string(), errno);
  Stamp stamp{static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim),
              nanoseconds(status.st_ctim), status.st_ino, status.st_dev};
  auto& entry = entries_[file.native()];
  entry.used = true;
  if (entry.stamp == stamp) return entry.digest;
  const auto before = now_().time_since_epoch() / std::chrono::nanoseconds(1);
  std::error_code error;
  const auto real = std::filesystem::canonical(file, error);
  if (error) throw core::system_error("cannot read " + file.string(), error.value());
  // Holes take no space on the disk, but as long to read as data: a sparse file could take hours.
  file_tree::check_holes(file, file_tree::holes_in(real, status));
  entry.digest = core::sha256_file(file);
  // A file that changed while it was read, or so shortly before that a further change could have
  // the same time stamp, is read again the next time.
  struct stat after {};
  const bool steady = ::stat(file.c_str(), &after) == 0 &&
                      nanoseconds(after.st_mtim) == stamp.mtime_ns &&
                      nanoseconds(after.st_ctim) == stamp.ctime_ns;
  const auto age = before - std::max(stamp.mtime_ns, stamp.ctime_ns);
  // A stamp of a fine clock is valid sooner, but only for this process: save() does not write it.
  const bool has_fine_clock = stamp.mtime_ns % 1'000'000 != 0;
  entry.kept = steady && age > coarse_unit;
  entry.stamp = steady && (entry.kept || (has_fine_clock && age > fine_unit)) ? stamp : Stamp{};
  changed_ |= entry.kept;
  return entry.digest;
}

void StatIndex::save() {
  if (!changed_) return;
  std::size_t used = 0;
  for (const auto& [path, entry] : entries_) used += entry.used;
  const bool drop_unused = entries_.size() > 2 * used + spare_size;
  std::string bytes(header_text);
  for (const auto& [path, entry] : entries_) {
    if (!entry.kept || (drop_unused && !entry.used)) continue;
    append(bytes, static_cast<std::uint32_t>(path.size()));
    bytes += path;
    append(bytes, entry.stamp);
    append(bytes, entry.digest.bytes);
  }
  append(bytes, core::sha256(bytes).bytes);
  core::write_file_atomically(file_, bytes);
  changed_ = false;
}

void StatIndex::load() {
  if (loaded_) return;
  loaded_ = true;
  std::string bytes;
  try {
    bytes = core::read_file(file_, max_index_bytes);
  } catch (const core::EnvironmentError&) {
    return;  // Without the index, files are only read again.
  }
  // A damaged, truncated or incompatible index is dropped and written again.
  core::Digest sum;
  if (bytes.size() < header_text.size() + sum.bytes.size() || !bytes.starts_with(header_text))
    return;
  std::memcpy(sum.bytes.data(), bytes.data() + bytes.size() - sum.bytes.size(), sum.bytes.size());
  std::string_view rest(bytes);
  rest.remove_suffix(sum.bytes.size());
  if (core::sha256(rest) != sum) return;
  rest.remove_prefix(header_text.size());
  while (!rest.empty()) {
    std::uint32_t length = 0;
    if (!read(rest, length) || rest.size() < length) return;
    const std::string path(rest.substr(0, length));
    rest.remove_prefix(length);
    Entry entry;
    entry.kept = true;
    if (!read(rest, entry.stamp) || !read(rest, entry.digest.bytes)) return;
    entries_.emplace(path, entry);
  }
}

}  // namespace pipeline::store
