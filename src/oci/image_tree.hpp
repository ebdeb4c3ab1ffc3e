/// @file
/// Puts an image's layers on top of one another, and writes the resulting files as one tar. Only
/// the entries are kept in memory; the contents are copied from the layers' tars. Nothing is
/// unpacked into a folder, so no entry and no link can name anything outside of the image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "file_tree/tar_reader.hpp"

namespace pipeline::oci {

/// The files of an image, as its layers leave them.
class ImageTree {
 public:
  /// @param max_entries maximum number of entries of all layers, and of folders that they imply
  explicit ImageTree(std::uint64_t max_entries = 4'000'000);
  ~ImageTree();

  /// Puts a layer on top: an unpacked tar, which is read again by write(). Whiteouts hide what is
  /// below (image-spec, layer.md). Devices and pipes are left out: a user without root cannot have
  /// them. Throws ArchiveError for what must not be in a layer, and EnvironmentError.
  void add_layer(const std::filesystem::path& tar);

  /// Adds an empty folder or file, with its parents, if the image has nothing at this path.
  /// @param time seconds since 1970
  void add_missing_folder(std::string_view path, std::int64_t time);
  void add_missing_file(std::string_view path, std::int64_t time);

  /// Writes all files as a tar, folders before their content, in the order of their names.
  void write(const std::filesystem::path& tar) const;

 private:
  struct Node;
  class Layer;

  void count_entry();
  Node& folder_of(const std::vector<std::string>& parts, std::uint32_t layer);
  /// Returns the new node, a folder; null if the image has something at this path.
  Node* add_missing(std::string_view path, std::int64_t time);
  /// Writes the entries of a folder, and their contents.
  /// @param name path of the tar, for errors
  /// @param layers descriptors of the layers' tars
  static void write_content(int tar, const Node& folder, const std::string& path,
                            const std::filesystem::path& name, const std::vector<int>& layers);

  std::unique_ptr<Node> root_;
  std::vector<std::filesystem::path> layers_;
  const std::uint64_t max_entries_;
  std::uint64_t entries_ = 0;  ///< Entries of all layers, and folders that have no entry.
};

}  // namespace pipeline::oci
