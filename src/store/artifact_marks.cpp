#include "store/artifact_marks.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::store {

namespace fs = std::filesystem;
using file_tree::TreeNode;

namespace {

/// Modification time of frozen files, while they are hashed; differs from artifact_time.
constexpr std::time_t frozen_time = artifact_time - 1000;

/// Folders keep their owner's right to write, so that `rm -rf` can remove a state folder; an entry
/// that is added or removed changes the folder's time, and so its mark.
constexpr mode_t sealed_folder = 0755;

void set_time(const fs::path& path, std::time_t seconds, long nanoseconds) {
  const struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, nanoseconds}};
  if (::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    throw core::system_error("cannot set the time of " + path.string(), errno);
}

}  // namespace

void throw_changed(const fs::path& path) {
  throw core::ContentError(
      "cannot keep " + path.string() + ": it changed while it was read",
      {"some process still writes to it: a step must wait for all processes that it starts"});
}

std::optional<struct stat> status_of(const char* path) {
  struct stat status {};
  if (::lstat(path, &status) == 0) return status;
  if (errno != ENOENT && errno != ENOTDIR)
    throw core::system_error(std::string("cannot look at ") + path, errno);
  return std::nullopt;
}
std::optional<struct stat> status_of(const fs::path& path) { return status_of(path.c_str()); }

long mark(const core::Digest& digest, std::string_view place, std::uint64_t bytes) {
  std::uint64_t sum;
  std::memcpy(&sum, digest.bytes.data(), sizeof sum);
  // The factors are those of Fibonacci hashing and of FNV-1a; the result is below a second.
  sum ^= bytes * 0x9e3779b97f4a7c15ULL;
  for (const char c : place) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return static_cast<long>(sum % 1'000'000'000);
}

void set_mark(const fs::path& path, long nanoseconds) {
  set_time(path, artifact_time, nanoseconds);
}

bool has_mark(const struct stat& status, long nanoseconds) {
  return status.st_mtim.tv_sec == artifact_time && status.st_mtim.tv_nsec == nanoseconds;
}

void set_mode(const fs::path& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) != 0)
    throw core::system_error("cannot set the permissions of " + path.string(), errno);
}

std::uint64_t size_of(const TreeNode& node) {
  return node.kind == TreeNode::Kind::file ? node.bytes : 0;
}

void check_frozen(const fs::path& path, std::optional<std::uint64_t> bytes) {
  const auto status = status_of(path);
  if (!status || status->st_mtim.tv_sec != frozen_time ||
      (bytes && static_cast<std::uint64_t>(status->st_size) != *bytes))
    throw_changed(path);
}

void freeze(const fs::path& path, mode_t mode) {
  set_mode(path, mode);
  set_time(path, frozen_time, 0);
}

void freeze(const fs::path& root, const std::vector<TreeNode>& nodes) {
  for (const auto& node : nodes) {
    if (node.kind == TreeNode::Kind::file) freeze(root / node.path, node.executable ? 0555 : 0444);
    if (node.kind == TreeNode::Kind::directory) freeze(root / node.path, 0555);
  }
  freeze(root, 0755);
}

void check_frozen(const fs::path& root, const std::vector<TreeNode>& nodes) {
  check_frozen(root, std::nullopt);
  for (const auto& node : nodes) {
    if (node.kind == TreeNode::Kind::file) check_frozen(root / node.path, node.bytes);
    if (node.kind == TreeNode::Kind::directory) check_frozen(root / node.path, std::nullopt);
  }
  // Detects entries that were added or replaced before their folder was made read-only.
  const auto now = file_tree::scan_tree(root);
  const auto same = [](const TreeNode& a, const TreeNode& b) {
    return a.path == b.path && a.kind == b.kind && a.target == b.target;
  };
  if (!std::ranges::equal(now, nodes, same)) throw_changed(root);
}

void seal_contents(const fs::path& root, const std::vector<TreeNode>& nodes,
                   const core::Digest& digest) {
  // In reverse order, because changes in a folder would change its mark.
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const auto path = root / node->path;
    if (node->kind == TreeNode::Kind::file) set_mode(path, node->executable ? 0555 : 0444);
    if (node->kind == TreeNode::Kind::directory) set_mode(path, sealed_folder);
    set_mark(path, mark(digest, node->path, size_of(*node)));
  }
}

void seal_folder(const fs::path& root, const core::Digest& digest) {
  set_mode(root, sealed_folder);
  set_mark(root, mark(digest, "", 0));
}

}  // namespace pipeline::store
