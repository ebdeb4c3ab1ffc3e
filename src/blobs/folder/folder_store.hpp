/// @file
/// A folder that machines share, as on NFS, as a remote store.
#pragma once

#include "async/pair_of_threads.hpp"
#include "blobs/folder/shared_folder.hpp"
#include "blobs/kind.hpp"

namespace pipeline::blobs::folder {

/// Pods cannot reach it: no URL leads to a file.
class FolderStore final : public BlobStore {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string url() const override { return folder_.url(); }
  async::Task<> probe() override;
  async::Task<bool> has(std::string key) override;
  async::Task<> put(std::string key, Body body, core::CancelSource* cancel) override;
  async::Task<> get(std::string key, Range range, std::function<void(std::string_view)> on_bytes,
                    core::CancelSource* cancel) override;
  async::Task<std::optional<Tagged>> find_tagged(std::string key,
                                                 core::CancelSource* cancel) override;
  async::Task<std::optional<std::string>> put_if(std::string key, std::string text,
                                                 std::string tag) override;
  async::Task<std::vector<Entry>> entries(std::string prefix) override;
  async::Task<std::vector<std::string>> folders(std::string folder) override;
  async::Task<> remove(std::string key) override;
  async::Task<> copy(std::string from, std::string to, std::uint64_t bytes = 0) override;

 private:
  async::Task<core::Descriptor> lock(const std::string& key);

  const SharedFolder folder_;
  async::PairOfThreads pool_;  ///< Files of a network may keep a thread waiting.
};

/// The kind of store that `file:///FOLDER`, and a path, are.
const Kind& kind();

}  // namespace pipeline::blobs::folder
