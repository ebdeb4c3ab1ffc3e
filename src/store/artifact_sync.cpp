#include "store/artifact_sync.hpp"

#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"

namespace pipeline::store {

namespace fs = std::filesystem;
using file_tree::TreeNode;

namespace {

/// Files of this size and more are written to the disk early, bytes.
constexpr std::uint64_t large_file = std::uint64_t{16} << 20;

std::vector<fs::path> large_files(const fs::path& root, const std::vector<TreeNode>& nodes) {
  std::vector<fs::path> found;
  for (const auto& node : nodes)
    if (node.kind == TreeNode::Kind::file && node.bytes >= large_file)
      found.push_back(root / node.path);
  return found;
}

bool is_large(const fs::path& file) {
  struct stat status {};
  return ::lstat(file.c_str(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) >= large_file;
}

void begin_writing(const fs::path& path) {
  const core::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file) ::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

}  // namespace

void sync_contents(const std::filesystem::path& root, const std::vector<TreeNode>& nodes) {
  constexpr std::size_t many_files = 500;  // Above, a call for the whole file system is cheaper.
  if (nodes.size() > many_files) try {
      return core::sync_file_system(root);
    } catch (const core::EnvironmentError& error) {  // Some network file systems cannot.
      core::log::info(error.what());
    }
  // All files begin to be written before the first is waited for. Their contents are thus written
  // together, and each wait only has the disk empty its cache.
  for (const auto& node : nodes)
    if (node.kind == TreeNode::Kind::file) begin_writing(root / node.path);
  // From the end: a folder after what lies in it.
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (node->kind != TreeNode::Kind::link) core::sync_to_disk(root / node->path);
  core::sync_to_disk(root);
}

EarlyWriting::EarlyWriting(const fs::path& file)
    : EarlyWriting(is_large(file) ? std::vector{file} : std::vector<fs::path>()) {}

EarlyWriting::EarlyWriting(const fs::path& root, const std::vector<TreeNode>& nodes)
    : EarlyWriting(large_files(root, nodes)) {}

// A disk's queue is short: sync_file_range() returns only when most of the file is written.
EarlyWriting::EarlyWriting(std::vector<fs::path> files) {
  if (files.empty()) return;
  thread_ = std::jthread([files = std::move(files)] {
    for (const auto& file : files) begin_writing(file);
  });
}

}  // namespace pipeline::store
