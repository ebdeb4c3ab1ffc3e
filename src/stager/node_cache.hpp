/// @file
/// A folder of the node in which its pods keep what they download, so that pods with equal inputs
/// download them once. Only stagers see the folder, but users of several pods may write to it:
/// each reader compares the digest of its own copy of an object. If the folder fails, the caller
/// can still download the object by itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/file.hpp"

namespace pipeline::stager {

/// Waits for a pod that downloads the same object.
struct NodeCacheWaits {
  std::chrono::milliseconds poll{100};
  /// After this time without a new byte, the waiting pods go on without the folder.
  std::chrono::milliseconds max_silence{60'000};
};

/// May be used by several threads.
class NodeCache {
 public:
  struct Object {
    core::Descriptor file;  ///< Locked, so that trim() leaves the object.
    bool is_new = false;    ///< This call has downloaded it.
    std::uint64_t bytes = 0;
  };
  /// Writes an object to the open, empty file. Throws TransferError if it cannot be downloaded, and
  /// any other EnvironmentError if it cannot be written.
  using Download = std::function<void(int file, const std::filesystem::path& path)>;

  /// @param budget bytes to which trim() reduces the folder
  NodeCache(std::filesystem::path folder, std::uint64_t budget, NodeCacheWaits waits = {})
      : folder_(std::move(folder)), budget_(budget), waits_(waits) {}

  /// Returns the object, which is downloaded if the folder does not have it: by one process at a
  /// time, and by the next one if that dies. Returns nothing if the folder cannot be used, for
  /// example because the disk is full. Throws TransferError of the download.
  /// @param name file name that determines the content
  std::optional<Object> open(const std::string& name, const Download& download);
  /// Removes an object whose content is wrong, unless another one has taken its name.
  void discard(const std::string& name, const Object& object);
  /// Removes objects that nobody reads, the longest unused first, until the folder fits into the
  /// budget; and the remains of processes that died.
  void trim() { trim_to(budget_); }

  /// Returns a line for users: how many bytes of the counted objects the folder already had, and
  /// how many were downloaded.
  std::string summary() const;
  /// Adds the object to the sums of summary().
  void count(const Object& object) { (object.is_new ? downloaded_ : found_) += object.bytes; }

 private:
  std::optional<Object> find(const std::string& name) const;
  std::optional<Object> fill(core::Descriptor part, const std::string& name,
                             const Download& download);
  void note_trouble(const std::string& what, int error_number);
  void note_trouble(std::string trouble);
  void trim_to(std::uint64_t budget);

  const std::filesystem::path folder_;
  const std::uint64_t budget_;
  const NodeCacheWaits waits_;
  std::atomic<std::uint64_t> found_ = 0, downloaded_ = 0;  ///< Bytes of counted objects.
  std::atomic<std::uint64_t> added_ = 0;                   ///< Bytes since the last trim.
  mutable std::mutex mutex_;                               ///< Guards `trouble_`.
  std::string trouble_;  ///< The last reason why the folder could not be used.
};

}  // namespace pipeline::stager
