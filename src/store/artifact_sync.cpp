#include "store/artifact_sync.hpp"

#include <fcntl.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"

namespace pipeline::store {

using file_tree::TreeNode;

void sync_contents(const std::filesystem::path& root, const std::vector<TreeNode>& nodes) {
  constexpr std::size_t many_files = 500;
  if (nodes.size() > many_files) try {
      return core::sync_file_system(root);
    } catch (const core::EnvironmentError& error) {  // Some network file systems cannot.
      core::log::info(error.what());
    }
  // Begins to write all files before it waits for the first one: then the disk is asked to empty
  // its cache for each, but the contents are written at once.
  for (const auto& node : nodes) {
    if (node.kind != TreeNode::Kind::file) continue;
    const core::Descriptor file(
        ::open((root / node.path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file) ::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (node->kind != TreeNode::Kind::link) core::sync_to_disk(root / node->path);
  core::sync_to_disk(root);
}

}  // namespace pipeline::store
