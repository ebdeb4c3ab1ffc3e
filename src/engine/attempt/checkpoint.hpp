/// @file
/// The folder in which a step keeps its progress until it succeeds.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/file.hpp"

namespace pipeline::engine {

/// Name of the folder, below the state folder, that holds the steps' checkpoints by their keys.
inline constexpr const char* checkpoints_folder = "checkpoints";

/// Folder of a step with one key: attempts, retries, `pipe resume` and later runs find in it the
/// files of earlier attempts, until one succeeds. A lock shows that a driver uses it; the lock ends
/// with the driver.
class Checkpoint {
 public:
  /// Creates the folder if there is none. Returns null while another driver uses it: two attempts
  /// must not write to one folder. Throws EnvironmentError if it cannot be created.
  static std::shared_ptr<Checkpoint> open(const std::filesystem::path& state,
                                          const std::string& key);

  const std::filesystem::path& folder() const { return folder_; }
  std::string key() const { return folder_.filename(); }
  /// Replaces the content by that of another folder on the same file system, at once where the file
  /// system can exchange folders. Removes the old content, and `fresh`. Throws EnvironmentError if
  /// the folder cannot be locked or renamed.
  void replace(const std::filesystem::path& fresh);
  /// Removes the folder, once the step's success is persisted.
  void remove();

  Checkpoint(std::filesystem::path folder, core::Descriptor lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

 private:
  std::filesystem::path folder_;
  core::Descriptor lock_;  ///< The open folder, locked.
};

}  // namespace pipeline::engine
