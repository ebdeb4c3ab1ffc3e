#include "file_tree/tree.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/reading_stop.hpp"
#include "core/regular_file.hpp"

namespace pipeline::file_tree {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t buffer_size = 1 << 20;
/// Maximum number of path components that are followed if a link leads through other links.
constexpr std::size_t max_chain_steps = 250;
constexpr int max_links = 40;  // Linux's own limit for a path.

[[noreturn]] void refuse_node(const fs::path& path, const std::string& what,
                              const std::string& advice) {
  throw core::ContentError("cannot keep " + path.string() + ": " + what, {advice});
}

void add_components(std::deque<std::string>& components, const std::string& path) {
  std::deque<std::string> added;
  for (const auto& component : fs::path(path)) added.push_back(component.string());
  components.insert(components.begin(), added.begin(), added.end());
}

/// Returns false for a file whose size on the disk shows that it has no holes, or hardly any.
bool may_have_holes(const struct stat& status) {
  constexpr std::uint64_t hole_block = 512, negligible = 1u << 20;
  const auto size = static_cast<std::uint64_t>(status.st_size),
             on_disk = static_cast<std::uint64_t>(status.st_blocks) * hole_block;
  return size >= on_disk + negligible;
}

enum class LinkEnd { inside, outside, loop };

/// Returns where a link ends.
/// @param last receives the target of the last link on the way
LinkEnd follow(const fs::path& root, const std::string& link, const FolderNames& names,
               std::string& last) {
  // Resolves the path as the kernel does and checks at each component that it is below `root`. The
  // text alone does not suffice: `a/../b` leads elsewhere where `a` is a link.
  std::deque<std::string> rest;
  add_components(rest, link);
  fs::path place;
  std::size_t steps = 0;
  for (int links = 0; !rest.empty();) {
    if (links > 1 && ++steps > max_chain_steps) return LinkEnd::loop;
    const auto component = rest.front();
    rest.pop_front();
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      if (place.empty()) return LinkEnd::outside;
      place = place.parent_path();
      continue;
    }
    std::error_code error;
    const auto target = fs::read_symlink(root / place / component, error);
    if (error) {
      place /= component;
    } else {
      last = relative_target((place / component).string(), target.string(), names);
      if (last.starts_with('/')) return LinkEnd::outside;
      if (++links > max_links) return LinkEnd::loop;
      add_components(rest, last);
    }
  }
  return LinkEnd::inside;
}

/// Throws ContentError for a link that leaves the folder, or leads back to itself.
void check_link(const fs::path& root, const TreeNode& node, const FolderNames& names) {
  std::string last;
  const auto end = follow(root, node.path, names, last);
  const auto what = "it is a symbolic link to " + node.target + ", ";
  if (end == LinkEnd::outside)
    refuse_node(root / node.path,
                what + (last == node.target ? "" : "which leads to " + last + ", ") +
                    "outside of the folder",
                "copy what it points to instead, e.g. with cp -L");
  if (end == LinkEnd::loop)
    refuse_node(root / node.path, what + "which leads back to itself",
                "remove it, or let it point to a file or a folder");
}

}  // namespace

std::string relative_target(const std::string& link, const std::string& target,
                            const FolderNames& names) {
  if (target.empty()) return target;
  const fs::path to(target), folder = fs::path(link).parent_path();
  // `../model/file` leads out of the folder `model` and back into it.
  if (!to.is_absolute() &&
      (to != to.lexically_normal() || *(folder / to).lexically_normal().begin() != ".."))
    return target;
  for (const auto& name : names) {
    const auto place = to.is_absolute() ? to : (name / folder / to).lexically_normal();
    const auto below = place.lexically_relative(name);
    if (below.empty() || *below.begin() == "..") continue;
    return below.lexically_relative(folder).string();
  }
  return target;
}

bool stays_inside(const fs::path& root, const std::string& link, const FolderNames& names) {
  std::string last;
  return follow(root, link, names, last) == LinkEnd::inside;
}

std::uint64_t holes_in(const fs::path& file, const struct stat& status) {
  if (!may_have_holes(status)) return 0;
  const auto open = core::open_untrusted_file(file);
  if (!open) throw core::system_error("cannot read " + file.string(), errno);
  return holes_in(open.get(), status);
}

std::uint64_t holes_in(int file, const struct stat& status) {
  if (!may_have_holes(status)) return 0;
  std::uint64_t holes = 0;
  for (off_t at = 0; at < status.st_size;) {
    const auto hole = ::lseek(file, at, SEEK_HOLE);
    if (hole < 0 || hole >= status.st_size) break;
    const auto data = ::lseek(file, hole, SEEK_DATA);
    const auto end = data < 0 ? status.st_size : data;  // ENXIO: the hole extends to the end.
    holes += static_cast<std::uint64_t>(end - hole);
    at = end;
  }
  return holes;
}

void check_holes(const fs::path& path, std::uint64_t holes) {
  if (holes > max_holes)
    refuse_node(path,
                "it is sparse: " + std::to_string(holes >> 30) +
                    " GiB of it were never written, and at most " +
                    std::to_string(max_holes >> 30) + " GiB may be",
                "write only what holds data; a file without holes may be of any size");
}

std::vector<TreeNode> scan_tree(const fs::path& root, const FolderNames& names) {
  std::vector<TreeNode> nodes;
  std::vector<std::string> folders = {""};
  std::uint64_t holes = 0;
  while (!folders.empty()) {
    const auto folder = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    fs::directory_iterator entries(root / folder, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      TreeNode node;
      node.path = (fs::path(folder) / entries->path().filename()).string();
      struct stat status {};
      if (::lstat(entries->path().c_str(), &status) != 0)
        throw core::system_error("cannot read " + entries->path().string(), errno);
      if (S_ISDIR(status.st_mode)) {
        node.kind = TreeNode::Kind::directory;
        folders.push_back(node.path);
      } else if (S_ISREG(status.st_mode)) {
        node.executable = (status.st_mode & S_IXUSR) != 0;
        node.bytes = static_cast<std::uint64_t>(status.st_size);
        holes += holes_in(entries->path(), status);
        check_holes(entries->path(), holes);
      } else if (S_ISLNK(status.st_mode)) {
        node.kind = TreeNode::Kind::link;
        node.target = fs::read_symlink(entries->path(), error).string();
        if (error)
          throw core::system_error("cannot read " + entries->path().string(), error.value());
        node.target = relative_target(node.path, node.target, names);
        check_link(root, node, names);
      } else {
        refuse_node(entries->path(), "it is a socket, a pipe or a device",
                    "remove it: only files, folders and links can be kept");
      }
      nodes.push_back(std::move(node));
    }
    if (error)
      throw core::system_error("cannot read the folder " + (root / folder).string(), error.value());
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const TreeNode& a, const TreeNode& b) { return a.path < b.path; });
  return nodes;
}

void rewrite_links(const fs::path& root, const std::vector<TreeNode>& nodes) {
  for (const auto& node : nodes) {
    const auto link = root / node.path;
    if (node.kind != TreeNode::Kind::link || fs::read_symlink(link) == node.target) continue;
    ::chmod(link.parent_path().c_str(), 0755);  // The step may have removed write permission.
    if (::unlink(link.c_str()) != 0 || ::symlink(node.target.c_str(), link.c_str()) != 0)
      throw core::system_error("cannot make the link " + link.string(), errno);
  }
}

core::Digest tree_digest(const std::vector<TreeNode>& nodes) {
  core::Hasher hasher;
  hasher.field("pipe tree 1");
  for (const auto& node : nodes) {
    const char kind[] = {static_cast<char>(node.kind), node.executable ? 'x' : '-'};
    hasher.field(node.path).field({kind, sizeof kind});
    if (node.kind == TreeNode::Kind::file)
      hasher.field(
          {reinterpret_cast<const char*>(node.digest.bytes.data()), node.digest.bytes.size()});
    if (node.kind == TreeNode::Kind::link) hasher.field(node.target);
  }
  auto digest = hasher.finish();
  // A file that contains exactly the bytes hashed above has the same SHA-256. Inverting the bits
  // gives a digest that no known file can have.
  for (auto& byte : digest.bytes) byte = static_cast<std::uint8_t>(~byte);
  return digest;
}

void hash_tree(const fs::path& root, std::vector<TreeNode>& nodes) {
  for (auto& node : nodes) {
    if (node.kind == TreeNode::Kind::file) node.digest = core::sha256_file(root / node.path);
  }
}

void copy_tree(const fs::path& root, std::vector<TreeNode>& nodes, const fs::path& target,
               std::uint64_t* copied) {
  for (auto& node : nodes) {
    const auto to = target / node.path;
    switch (node.kind) {
      case TreeNode::Kind::directory:
        if (::mkdir(to.c_str(), 0777) != 0)
          throw core::system_error("cannot make the folder " + to.string(), errno);
        break;
      case TreeNode::Kind::link:
        if (::symlink(node.target.c_str(), to.c_str()) != 0)
          throw core::system_error("cannot make the link " + to.string(), errno);
        break;
      case TreeNode::Kind::file:
        node.digest =
            copy_file(root / node.path, to, node.executable ? 0777 : 0666, &node.bytes, copied);
        break;
    }
  }
}

namespace {

/// Makes the empty file `to` share the blocks of `from`, and returns its size. Returns nothing for
/// a small file, and if the file system cannot share blocks. A copy by the kernel would not be
/// faster than a copy that is hashed on its way.
std::optional<std::uint64_t> share_blocks(int from, int to) {
  constexpr off_t min_bytes = 64 << 10;
  struct stat status {};
  if (::fstat(from, &status) != 0 || status.st_size < min_bytes ||
      ::ioctl(to, FICLONE, from) != 0 || ::fstat(to, &status) != 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

core::Digest copy_file(const fs::path& source, const fs::path& target, unsigned mode,
                       std::uint64_t* bytes, std::uint64_t* copied) {
  const core::Descriptor from(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) throw core::system_error("cannot read " + source.string(), errno);
  const core::Descriptor to(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!to) throw core::system_error("cannot write " + target.string(), errno);
  if (const auto size = share_blocks(from.get(), to.get())) {
    if (bytes) *bytes = *size;
    return core::sha256_file(target);
  }
  core::Hasher hasher;
  const auto buffer = std::make_unique_for_overwrite<char[]>(buffer_size);
  std::uint64_t total = 0;
  while (true) {
    core::check_reading();
    const ssize_t count = ::read(from.get(), buffer.get(), buffer_size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + source.string(), errno);
    if (count == 0) break;
    const std::string_view chunk(buffer.get(), static_cast<std::size_t>(count));
    hasher.update(chunk);
    total += chunk.size();
    core::write_fully(to.get(), chunk, target);
  }
  if (bytes) *bytes = total;
  if (copied) *copied += total;
  return hasher.finish();
}

}  // namespace pipeline::file_tree
