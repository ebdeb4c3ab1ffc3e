/// @file
/// A copy of the files that a run is made of, where a driver elsewhere reads them.
#pragma once

#include <filesystem>
#include <set>

namespace pipeline::detached {

/// Copies files and folders into a folder, as they lie to one another.
class Snapshot {
 public:
  /// @param folder the target, made if it is missing
  /// @param root   a folder that lies in the copy as it lies to the files
  /// @param files  absolute paths; what is not there is left out
  /// Throws EnvironmentError when a file cannot be copied.
  Snapshot(std::filesystem::path folder, const std::filesystem::path& root,
           const std::set<std::filesystem::path>& files);

  /// Where this file lies, or would lie, in the copy.
  std::filesystem::path placed(const std::filesystem::path& file) const;
  /// Copies one more file to where placed() says.
  void add(const std::filesystem::path& source, const std::filesystem::path& target) const;

 private:
  std::filesystem::path folder_;
  std::filesystem::path top_;  ///< The deepest folder that holds all of the files.
};

}  // namespace pipeline::detached
