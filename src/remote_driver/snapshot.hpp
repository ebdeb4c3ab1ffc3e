/// @file
/// A copy of a run's files, for a driver elsewhere.
#pragma once

#include <filesystem>
#include <set>

namespace pipeline::remote_driver {

/// Copies files and folders into a folder and keeps their relative positions.
class Snapshot {
 public:
  /// @param folder the target, created if missing
  /// @param root   a folder whose position relative to the files is kept in the copy
  /// @param files  absolute paths; missing files are skipped
  /// Throws EnvironmentError if a file cannot be copied.
  Snapshot(std::filesystem::path folder, const std::filesystem::path& root,
           const std::set<std::filesystem::path>& files);

  /// Returns the path of this file in the copy.
  std::filesystem::path path_of(const std::filesystem::path& file) const;
  /// Copies one more file to the path that path_of() returns.
  void add(const std::filesystem::path& source, const std::filesystem::path& target) const;

 private:
  std::filesystem::path folder_;
  std::filesystem::path top_;  ///< The deepest folder that contains all of the files.
};

}  // namespace pipeline::remote_driver
