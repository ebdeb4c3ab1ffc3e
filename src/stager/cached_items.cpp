#include "stager/cached_items.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/unpack.hpp"
#include "stager/download.hpp"
#include "stager/staging.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t buffer_size = std::size_t{256} << 10;
constexpr int max_tries = 3;

/// Reads the object up to the size that it has now: others can write to the cache, and a file that
/// grows while it is read would have no end. Returns false if it cannot be read.
bool read_all(int file, const std::function<void(std::string_view)>& on_bytes) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  const auto buffer = std::make_unique_for_overwrite<char[]>(buffer_size);
  for (auto left = static_cast<std::uint64_t>(status.st_size); left > 0;) {
    const auto count = ::read(file, buffer.get(), std::min<std::uint64_t>(left, buffer_size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) return true;
    on_bytes({buffer.get(), static_cast<std::size_t>(count)});
    left -= static_cast<std::uint64_t>(count);
  }
  return true;
}

/// Returns true for a file with large holes: such a file takes no space of its writer's, and its
/// copy would fill the disk of this pod.
bool is_too_sparse(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  const auto holes = file_tree::holes_in(file, status);
  ::lseek(file, 0, SEEK_SET);
  return holes > file_tree::max_holes;
}

/// Copies the object, or shares its blocks where the file system can do that, and returns the
/// digest of the copy. Makes no hard link, through which a step that runs as the object's owner
/// could change the object. Returns nothing if the object cannot be read.
std::optional<core::Digest> copy_object(int object, const fs::path& to, unsigned mode) {
  core::make_folders(to.parent_path());
  const core::Descriptor file(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) throw core::system_error("cannot write " + to.string(), errno);
  if (::ioctl(file.get(), FICLONE, object) == 0) return core::sha256_file(to);
  core::Hasher hasher;
  const bool is_read = read_all(object, [&](std::string_view bytes) {
    hasher.update(bytes);
    core::write_fully(file.get(), bytes, to);
  });
  return is_read ? std::optional(hasher.finish()) : std::nullopt;
}

/// Unpacks the object and returns the digest of the folder; nothing for an object that is not a
/// complete tar.
std::optional<core::Digest> unpack_object(int object, const fs::path& to) {
  core::make_folders(to);
  try {
    file_tree::Unpacker unpacker(to, {.requires_exact_form = true});
    if (!read_all(object, [&](std::string_view bytes) { unpacker.feed(bytes); }))
      return std::nullopt;
    unpacker.finish();
  } catch (const file_tree::ArchiveError&) {
    return std::nullopt;
  }
  auto nodes = file_tree::scan_tree(to);
  file_tree::hash_tree(to, nodes);
  return file_tree::tree_digest(nodes);
}

}  // namespace

void clear(const fs::path& path) {
  if (!fs::is_directory(fs::symlink_status(path))) return core::remove_tree(path);
  for (const auto& entry : core::entries_of(path)) core::remove_tree(entry);
}

bool fetch_cached(const json& item, const fs::path& to, NodeCache& cache, Transfer& transfer) {
  const bool is_tree = item.at("kind") == "tree";
  const auto wanted = core::Digest::from_hex(item.at("digest").get<std::string>());
  const auto name = wanted.hex() + (is_tree ? ".tar" : "");
  const auto download = [&](int file, const fs::path& path) {
    download_file(item.at("url"), file, path, transfer);
  };
  for (int tries = 0; tries < max_tries; ++tries) {
    const auto object = cache.open(name, download);
    if (!object) return false;
    const unsigned mode = item.value("executable", false) ? 0555 : 0444;
    const int file = object->file.get();
    std::optional<core::Digest> got;
    if (!is_too_sparse(file)) got = is_tree ? unpack_object(file, to) : copy_object(file, to, mode);
    if (got == wanted) {
      cache.count(*object);
      return true;
    }
    cache.discard(name, *object);
    clear(to);
    if (object->is_new)
      throw DamagedItem(to.string() + " is damaged: its SHA-256 is " +
                            (got ? got->hex() : "that of no archive") + ", not " + wanted.hex(),
                        wanted.hex());
    std::fprintf(stderr, "pipe-stager: the node's cache had other content for %s\n", to.c_str());
  }
  return false;
}

}  // namespace pipeline::stager
