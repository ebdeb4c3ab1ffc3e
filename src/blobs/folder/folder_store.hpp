/// @file
/// A remote store in a folder that machines share, for example by NFS.
#pragma once

#include "async/pair_of_threads.hpp"
#include "blobs/folder/shared_folder.hpp"
#include "blobs/kind.hpp"

namespace pipeline::blobs::folder {

/// Pods cannot reach this store, because there are no URLs for files.
class FolderStore final : public BlobStore {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string url() const override { return folder_.url(); }
  async::Task<> probe() override;
  async::Task<bool> has(std::string key) override;
  async::Task<> put(std::string key, Body body, core::CancelSource* cancel) override;
  async::Task<> get(std::string key, Range range, std::function<void(std::string_view)> on_bytes,
                    core::CancelSource* cancel) override;
  async::Task<std::optional<Tagged>> find_tagged(std::string key, core::CancelSource* cancel,
                                                 Lookup lookup) override;
  async::Task<std::optional<std::string>> put_if(std::string key, std::string text,
                                                 std::string tag) override;
  async::Task<std::vector<Entry>> entries(std::string prefix) override;
  async::Task<std::vector<std::string>> folders(std::string folder) override;
  async::Task<> remove(std::string key) override;
  async::Task<> copy(std::string from, std::string to, std::uint64_t bytes = 0) override;

 private:
  async::Task<core::Descriptor> lock(const std::string& key);

  const SharedFolder folder_;
  async::PairOfThreads pool_;  ///< For calls on files, which may block for long in a network.
};

/// Returns the kind of stores with the addresses `file:///FOLDER`, or a path.
const Kind& kind();

}  // namespace pipeline::blobs::folder
