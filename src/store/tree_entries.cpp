#include "store/tree_entries.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::store {

using file_tree::TreeNode;

namespace {

void check_place(const std::string& path) {
  const auto bad = [&] {
    throw core::EnvironmentError(
        "cannot put a file at '" + path +
        "' of a folder: the path is absolute, leads out of it, or is not plain");
  };
  if (path.empty() || path.front() == '/' || path.back() == '/' ||
      path.find('\0') != std::string::npos)
    bad();
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto component = std::string_view(path).substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") bad();
    begin = end + 1;
  }
}

}  // namespace

std::vector<TreeNode> nodes_of(std::span<const TreeEntry> entries, StatIndex& index) {
  std::map<std::string, TreeNode> nodes;
  const auto clash = [](const std::string& path) {
    throw core::EnvironmentError("cannot put two files at '" + path + "' of one folder");
  };
  for (const auto& entry : entries) {
    check_place(entry.relative_path);
    struct stat status {};
    if (::stat(entry.source.c_str(), &status) != 0)
      throw core::system_error("cannot read " + entry.source.string(), errno);
    if (!S_ISREG(status.st_mode))
      throw core::EnvironmentError("cannot read " + entry.source.string() + ": not a file");
    TreeNode node{entry.relative_path,
                  TreeNode::Kind::file,
                  (status.st_mode & S_IXUSR) != 0,
                  index.digest(entry.source),
                  {},
                  static_cast<std::uint64_t>(status.st_size)};
    if (!nodes.emplace(entry.relative_path, std::move(node)).second) clash(entry.relative_path);
    for (auto slash = entry.relative_path.find('/'); slash != std::string::npos;
         slash = entry.relative_path.find('/', slash + 1)) {
      const auto folder = entry.relative_path.substr(0, slash);
      const auto [place, added] =
          nodes.emplace(folder, TreeNode{folder, TreeNode::Kind::directory, false, {}, {}, 0});
      if (!added && place->second.kind != TreeNode::Kind::directory) clash(folder);
    }
  }
  std::vector<TreeNode> sorted;
  sorted.reserve(nodes.size());
  for (auto& [path, node] : nodes) sorted.push_back(std::move(node));
  return sorted;
}

}  // namespace pipeline::store
