#include "store/user_data.hpp"

#include <cerrno>
#include <map>
#include <utility>

#include <sys/stat.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"
#include "store/state_lock.hpp"

namespace pipeline::store {
namespace {

namespace fs = std::filesystem;
using file_tree::TreeNode;

/// Maximum number of entries of a folder that are parts of a key one by one.
constexpr std::size_t max_parts = 256;

struct stat user_status(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw core::system_error("cannot read " + path.string(), errno);
  return status;
}

bool is_folder(const fs::path& path) { return S_ISDIR(user_status(path).st_mode); }

void add_stamp(core::Hasher& hasher, const std::string& name, const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    throw core::system_error("cannot read " + path.string(), errno);
  const auto number = [&](auto value) { hasher.field(std::to_string(value)); };
  hasher.field(name);
  number(status.st_mode);
  if (S_ISDIR(status.st_mode)) {
    // The entries of a folder have stamps of their own. The times of the folder show that a file
    // was there for a moment, and may have been read; network file systems may invent these times.
    if (!is_local_file_system(path)) return;
  } else {
    number(status.st_ino);
    number(status.st_size);
  }
  for (const auto& time : {status.st_mtim, status.st_ctim}) {
    number(time.tv_sec);
    number(time.tv_nsec);
  }
}

std::string stamp_of_nodes(const fs::path& root, const std::vector<TreeNode>& nodes) {
  core::Hasher hasher;
  add_stamp(hasher, "", fs::canonical(root));
  for (const auto& node : nodes) add_stamp(hasher, node.path, root / node.path);
  return hasher.finish().hex();
}

std::string stamp_of_file(const fs::path& file) {
  std::error_code error;
  const auto real = fs::canonical(file, error);
  if (error) throw core::system_error("cannot read " + file.string(), error.value());
  core::Hasher hasher;
  add_stamp(hasher, "", real);
  return hasher.finish().hex();
}

std::vector<TreeNode> scan(const fs::path& folder) {
  try {
    return file_tree::scan_tree(folder, {fs::absolute(folder), fs::canonical(folder)});
  } catch (const core::ContentError& error) {
    auto advice = error.advice();
    advice.push_back("or name the files and folders in it that the step needs");
    throw core::ContentError(
        "the folder " + folder.string() + " cannot be an input: " + error.what(),
        std::move(advice));
  }
}

std::string part_of(const TreeNode& node) {
  switch (node.kind) {
    case TreeNode::Kind::file: return node.digest.hex() + (node.executable ? "x" : "");
    case TreeNode::Kind::link: return "link to " + node.target;
    case TreeNode::Kind::directory: break;
  }
  return "folder";
}

std::vector<std::pair<std::string, std::string>> parts_of(const std::vector<TreeNode>& nodes) {
  std::vector<std::pair<std::string, std::string>> parts;
  if (nodes.size() <= max_parts) {
    for (const auto& node : nodes) parts.emplace_back(node.path, part_of(node));
    return parts;
  }
  std::map<std::string, core::Hasher> groups;
  for (const auto& node : nodes) {
    const auto slash = node.path.find('/');
    groups[slash == std::string::npos ? "." : node.path.substr(0, slash + 1)]
        .field(node.path)
        .field(part_of(node));
  }
  for (auto& [name, hasher] : groups) parts.emplace_back(name, hasher.finish().hex());
  return parts;
}

}  // namespace

UserData read_user_data(const fs::path& path, StatIndex& index) {
  UserData data;
  if (!is_folder(path)) {
    data.stamp = stamp_of_file(path);
    data.digest = index.digest(path);
    data.is_executable = (user_status(path).st_mode & S_IXUSR) != 0;
    return data;
  }
  data.is_directory = true;
  auto nodes = scan(path);
  data.stamp = stamp_of_nodes(path, nodes);
  for (auto& node : nodes)
    if (node.kind == TreeNode::Kind::file) node.digest = index.digest(path / node.path);
  data.digest = file_tree::tree_digest(nodes);
  data.parts = parts_of(nodes);
  return data;
}

std::string stamp_of(const fs::path& path) {
  return is_folder(path) ? stamp_of_nodes(path, scan(path)) : stamp_of_file(path);
}

StoredArtifact store_user_data(const fs::path& path, ArtifactStore& artifacts,
                               const fs::path& scratch) {
  core::remove_tree(scratch);
  if (!is_folder(path)) {
    file_tree::copy_file(path, scratch, 0666);
    return artifacts.take(scratch);
  }
  core::make_folders(scratch);
  auto nodes = scan(path);
  file_tree::copy_tree(path, nodes, scratch);
  return artifacts.take(scratch);
}

}  // namespace pipeline::store
