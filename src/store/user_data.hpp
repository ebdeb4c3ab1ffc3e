/// @file
/// Inputs that are files and folders of the user's. Steps on this machine read them in place; for
/// steps elsewhere they are copied into the store.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "store/artifact_store.hpp"

namespace pipeline::store {

/// The content of a file or folder.
struct UserData {
  core::Digest digest;  ///< As that of an artifact with this content.
  bool is_directory = false;
  bool is_executable = false;  ///< Only for a file: its owner may execute it.
  /// Content by path in the folder, sorted, as parts of a key; of a large folder one entry for each
  /// of its own folders. Empty for a file.
  std::vector<std::pair<std::string, std::string>> parts;
  /// Changes with sizes, times and names. Comparing it is cheaper than reading the content.
  std::string stamp;
};

/// Returns the content of a file or folder. Reads only the files that have changed since `index`
/// has read them. Throws EnvironmentError for files that cannot be read, and for links that lead
/// out of the folder.
UserData read_user_data(const std::filesystem::path& path, StatIndex& index);

/// Returns the present UserData::stamp. Throws as read_user_data(). May be called on any thread.
std::string stamp_of(const std::filesystem::path& path);

/// Copies the data into the store.
/// @param scratch a folder on the store's file system for the incomplete copy
StoredArtifact store_user_data(const std::filesystem::path& path, ArtifactStore& artifacts,
                               const std::filesystem::path& scratch);

}  // namespace pipeline::store
